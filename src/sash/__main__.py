"""`python -m sash` is `sash`."""

from sash.cli import main

if __name__ == "__main__":
    raise SystemExit(main())
