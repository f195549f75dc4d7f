"""The `sash` command: one subcommand per task, each in a module of its own that is imported when it is called."""

from __future__ import annotations

import argparse
import importlib
import os
import sys
from collections.abc import Sequence
from typing import NoReturn

from sash import __version__

# subcommand: (module with add_arguments(parser) and run(args) -> exit code, one line of help)
COMMANDS = {
    "run": ("sash.commands.run", "run a declared pipeline: windows, rolling features and tiles, from any Spark source to any sink"),
    "query": ("sash.commands.query", "ask a tile store about any range of time, also while a stream writes it; without Spark"),
    "index": (
        "sash.commands.index",
        "index a Parquet, Delta or Iceberg table by time and key, for sash query; again, to bring it up to date",
    ),
    "serve": ("sash.commands.serve", "answer over HTTP from tile stores, with a page to look at them and metrics"),
    "explain": ("sash.commands.explain", "say what would be chosen and why: for a window, a slide, a wheel, a pipeline"),
    "inspect": ("sash.commands.inspect", "look into a checkpoint: keys, slices, bytes, watermark, definition"),
    "bench": ("sash.bench.command", "measure: the papers' figures, and races against what users run today"),
    "demo": ("sash.demo", "stream the 2013 New York flights through Spark and prove that stream = batch"),
    "completion": ("sash.cli", "print a script that completes commands and options in a shell"),
}
SHELLS = ("bash", "zsh", "fish")


class _Parser(argparse.ArgumentParser):
    """Says what is wrong in one line."""

    def error(self, message: str) -> NoReturn:
        self.exit(2, f"{self.prog}: {message}. See {self.prog} --help\n")


def main(arguments: Sequence[str] | None = None) -> int:
    """Run a subcommand and return its exit code: 0, 1 if it failed, 2 if it was asked wrongly."""
    return _guarded(parse(sys.argv[1:] if arguments is None else list(arguments)))


def parse(given: list[str]) -> argparse.Namespace:
    """Read the arguments; what is asked wrongly ends the process with one line."""
    if not given:
        _Parser(prog="sash").error(f"say what to do, one of {', '.join(COMMANDS)}")
    return _parser(given[:1]).parse_args(given)


def _parser(asked: Sequence[str]) -> argparse.ArgumentParser:
    """Make the parser with the options of the commands that are asked for; the others are listed, not imported."""
    parser = _Parser(prog="sash", description="Sliding-window aggregation for Python and Spark.")
    parser.add_argument("--version", action="version", version=f"sash {__version__}", help="print the version and stop")
    commands = parser.add_subparsers(dest="command", required=True, metavar="command")
    for name, (module, help_) in COMMANDS.items():
        command = commands.add_parser(name, help=help_, description=help_)
        if name in asked:
            try:
                importlib.import_module(module).add_arguments(command)
            except ImportError as error:
                if len(asked) == 1:  # where all commands are listed for a shell, this one is listed without its options
                    parser.exit(1, f"sash {name}: {error}\n")
    return parser


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the options of `sash completion`."""
    parser.epilog = 'For the running shell: eval "$(sash completion bash)". For all: the script goes where the shell looks for completions.'
    parser.add_argument("shell", choices=SHELLS, help="the shell that is to complete")


def run(args: argparse.Namespace) -> int:
    """Print the script of a shell."""
    try:
        import shtab
    except ImportError:
        raise ImportError("completion needs the package shtab. Install it: pip install shtab") from None
    print(shtab.complete(_parser(tuple(COMMANDS)), shell=args.shell))
    return 0


def _guarded(args: argparse.Namespace) -> int:
    """Run a subcommand; what a user can mend is one line without a traceback."""
    from sash.errors import SashError

    try:
        code = int(importlib.import_module(COMMANDS[args.command][0]).run(args))
        sys.stdout.flush()
        return code
    except BrokenPipeError:  # the reader, such as head, has seen enough
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 0
    except KeyboardInterrupt:
        print(f"\nsash {args.command}: stopped", file=sys.stderr)
        return 130
    except (SashError, ImportError, OSError) as error:
        print(f"sash {args.command}: {error}", file=sys.stderr)
        return 1


if __name__ == "__main__":
    raise SystemExit(main())
