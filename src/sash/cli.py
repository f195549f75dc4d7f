"""The `sash` command: one subcommand per task, each in a module of its own that is imported when it is called."""

from __future__ import annotations

import argparse
import importlib
import sys
from collections.abc import Sequence

# subcommand: (module with add_arguments(parser) and run(args) -> exit code, one line of help)
COMMANDS = {
    "bench": ("sash.bench.command", "measure: the papers' figures, and races against what users run today"),
    "demo": ("sash.demo", "stream the 2013 New York flights through Spark and prove that stream = batch"),
}


def main(arguments: Sequence[str] | None = None) -> int:
    """Run a subcommand and return its exit code."""
    given = sys.argv[1:] if arguments is None else list(arguments)
    parser = argparse.ArgumentParser(prog="sash", description="Sliding-window aggregation for Python and Spark.")
    commands = parser.add_subparsers(dest="command", required=True, metavar="command")
    for name, (module, help_) in COMMANDS.items():
        command = commands.add_parser(name, help=help_, description=help_)
        if given[:1] == [name]:  # the others are listed, not imported
            importlib.import_module(module).add_arguments(command)
    args = parser.parse_args(given)
    return int(importlib.import_module(COMMANDS[args.command][0]).run(args))


if __name__ == "__main__":
    raise SystemExit(main())
