"""`sash serve`: answers from tile stores over HTTP, a page to look at them, and metrics."""

from __future__ import annotations

import argparse
import dataclasses
from pathlib import Path
from typing import Any

from sash.errors import DefinitionError

__all__ = ["add_address", "add_arguments", "run", "served"]

PORT = 8017


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the options of `sash serve`."""
    parser.add_argument("stores", nargs="+", metavar="STORE", help="the folder of a tile store, or NAME=FOLDER; only these are served")
    parser.add_argument(
        "--listen", default=str(PORT), metavar="HOST:PORT", help=f"where to listen (default: 127.0.0.1:{PORT}, for this machine alone)"
    )
    add_address(parser)
    parser.add_argument("--memory", default="4G", metavar="SIZE", help="of wheels that hold all keys, e.g. 8G (default: 4G)")
    parser.add_argument("--seconds", type=float, default=5.0, metavar="S", help="the longest that one request may take (default: 5)")


def add_address(parser: argparse.ArgumentParser) -> None:
    """Declare the options that say who may ask."""
    parser.add_argument("--token", metavar="TOKEN", help="ask for this token; others on this machine can see it in the list of processes")
    parser.add_argument("--token-file", type=Path, metavar="FILE", help="ask for one of the tokens in this file, one per line")


def run(args: argparse.Namespace) -> int:
    """Serve until Ctrl-C."""
    from sash.serve import app
    from sash.serve.limits import Limits
    from sash.serve.server import Address, foreground, tokens

    address = Address.read(args.listen, PORT)
    token = tokens(args.token, args.token_file)
    address.require(token)
    if args.seconds <= 0:
        raise DefinitionError(f"--seconds {args.seconds:g} is no time to answer in. Use e.g. 5.")
    limits = dataclasses.replace(Limits(), memory=_size(args.memory), seconds=args.seconds)
    made = app(served(args.stores), token, limits=limits, hosts=address.hosts())

    def ready(at: Any) -> None:
        print(f"{', '.join(served(args.stores))}: {at.url}" + ("  (with the token)" if token else "") + "  Ctrl-C ends it", flush=True)

    foreground(made, address, ready)
    return 0


def served(texts: list[str]) -> dict[str, str]:
    """Stores by name, from FOLDER or NAME=FOLDER."""
    from sash.serve.application import named

    pairs = [
        (name, folder) if mark else (Path(text).resolve().name, text) for text in texts for name, mark, folder in [text.partition("=")]
    ]
    try:
        found = named({name: folder for name, folder in pairs})
    except ValueError as error:
        raise DefinitionError(str(error)) from None
    if len(found) < len(pairs):
        raise DefinitionError(f"two stores have one name: {', '.join(name for name, _ in pairs)}. Name them: NAME=FOLDER.")
    return {name: str(folder) for name, folder in found.items()}


def _size(text: str) -> int:
    units = {"K": 2**10, "M": 2**20, "G": 2**30}
    number, unit = text[:-1], text[-1:].upper()
    if not number.isdecimal() or unit not in units:
        raise DefinitionError(f"--memory {text} is no size. Write e.g. 512M or 8G.")
    return int(number) * units[unit]
