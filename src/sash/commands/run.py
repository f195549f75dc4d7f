"""`sash run`: run a declared pipeline until its source is read, or until Ctrl-C; the next run goes on from there."""

from __future__ import annotations

import argparse
import contextlib
import os
import re
import signal
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from sash.commands.serve import PORT, add_address
from sash.errors import SashError
from sash.pipeline import document

__all__ = ["add_arguments", "run", "stderr_to"]


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the options of `sash run`."""
    parser.add_argument("pipeline", type=Path, metavar="PIPELINE.toml", help="what to compute: source, windows, rolling, tiles, sinks")
    parser.add_argument("--master", default=None, help="where Spark runs (default: this machine, all cores)")
    parser.add_argument("--check", action="store_true", help="read and plan the pipeline, say what is wrong, and stop")
    parser.add_argument("--log", type=Path, metavar="FILE", help="where Spark's own messages go (default: spark.log in the checkpoint)")
    parser.add_argument(
        "--serve", nargs="?", const=str(PORT), metavar="HOST:PORT", help=f"answer from the tiles meanwhile, with a page (127.0.0.1:{PORT})"
    )
    parser.add_argument("--metrics", metavar="HOST:PORT", help="figures for Prometheus; a port alone is on 127.0.0.1")
    add_address(parser)


def run(args: argparse.Namespace) -> int:
    """Run a pipeline; 0 when it has read all there is or was stopped, 1 if it failed."""
    pipeline = document.read(args.pipeline)
    from sash.pipeline.job import Job, failure
    from sash.pipeline.progress import Meter, Screen, source_files
    from sash.spark import session
    from sash.spark.tile_sink import local_path

    serving = _Serving.of(args)
    log = args.log or _log_file(local_path(pipeline.checkpoint))
    conf: dict[str, Any] = {**pipeline.spark, **({"master": args.master} if args.master else {})}
    print(f"{pipeline.name}: {', '.join(section.name for section in pipeline.sections)}; Spark's messages go to {log}", flush=True)
    with stderr_to(log):
        spark = session(f"sash run {pipeline.name}", **conf)
    stopping = _Stopping()
    try:
        job = Job(spark, pipeline, dry=args.check)
        if args.check:
            print("nothing is wrong with it")
            return 0
        files = source_files(pipeline.source.path) if pipeline.every is None and pipeline.source.format != "table" else None
        meters = {s.name: Meter(s.name, files, local_path(job.checkpoint(s))) for s in pipeline.sections}
        screen = Screen(list(meters.values()))
        with serving.beside(spark, job):
            try:
                queries = job.start()
            except Exception as error:
                raise SashError(failure(error)) from error
            _watch(queries, meters, screen, stopping)
            if args.serve and not any(query.exception() for query in queries.values()) and not stopping.asked:
                print("done: all that the source has is read; the page stays until Ctrl-C", flush=True)
                while not stopping.asked:
                    time.sleep(0.1)
        failed = {name: query.exception() for name, query in queries.items() if query.exception() is not None}
        for name, why in failed.items():
            print(f"sash run: {name} failed: {failure(why)}", file=sys.stderr)
        if failed:
            print(f"sash run: what was done is kept; the next run goes on from there. Spark's messages are in {log}", file=sys.stderr)
            return 1
        print("stopped; the next run goes on from here" if stopping.asked else "done: all that the source has is read", flush=True)
        return 0
    finally:
        stopping.restore()
        spark.stop()


def _watch(queries: dict[str, Any], meters: dict[str, Any], screen: Any, stopping: _Stopping) -> None:
    """Show progress until all queries have ended, or one failed, or Ctrl-C came: then stop them between two batches."""
    told = False
    while any(query.isActive for query in queries.values()):
        if any(query.exception() is not None for query in queries.values() if not query.isActive):
            for query in queries.values():
                query.stop()
        screen.show([meters[name] for name, query in queries.items() if meters[name].read(query)])
        if stopping.asked:
            if not told:
                print("stopping after the running batches; Ctrl-C again stops at once", flush=True)
                told = True
            for query in queries.values():
                if query.isActive and (stopping.asked > 1 or not query.status["isTriggerActive"] or _between(query)):
                    query.stop()
        time.sleep(0.1)
    screen.show([meters[name] for name, query in queries.items() if meters[name].read(query)], last=True)


def _between(query: Any) -> bool:
    """Whether a query is between two batches: a batch that is cut off is done again, so this only saves work."""
    return not any(word in query.status["message"] for word in ("Processing", "cleaning", "batch"))


class _Serving:
    """The servers beside a pipeline: the page and answers, and figures alone."""

    def __init__(self, addresses: dict[str, Any], token: list[str] | None) -> None:
        self._addresses, self._token = addresses, token

    @classmethod
    def of(cls, args: argparse.Namespace) -> _Serving:
        """Read where to listen, before Spark is started for nothing."""
        asked = {what: text for what in ("serve", "metrics") if (text := getattr(args, what)) is not None}
        if not asked:
            return cls({}, None)
        import sash.serve.application  # noqa: F401  what is not installed is said now
        from sash.serve.server import Address, tokens

        token = tokens(args.token, args.token_file)
        addresses = {what: Address.read(text, PORT) for what, text in asked.items()}
        for address in addresses.values():
            address.require(token)
        return cls(addresses, token)

    @contextlib.contextmanager
    def beside(self, spark: Any, job: Any) -> Iterator[None]:
        """Serve while the body runs."""
        if not self._addresses:
            yield
            return
        from sash.serve import app
        from sash.serve.server import beside
        from sash.spark import listen

        with contextlib.ExitStack() as stack:
            figures = listen(spark)
            stack.callback(figures.close)
            for what, address in self._addresses.items():
                stores = {re.sub(r"[^A-Za-z0-9._-]", "-", name): store for name, store in job.stores.items()} if what == "serve" else {}
                made = app(stores, self._token, pipelines=figures, hosts=address.hosts())
                url = stack.enter_context(beside(made, address)).url
                print(f"the page: {url}" if what == "serve" else f"figures for Prometheus: {url}metrics", flush=True)
            yield


class _Stopping:
    """Counts how often Ctrl-C, or a polite kill, came; the first lets the running batch end."""

    def __init__(self) -> None:
        self.asked = 0
        self._before = {number: signal.signal(number, self._ask) for number in (signal.SIGINT, signal.SIGTERM)}

    def _ask(self, number: int, frame: Any) -> None:
        self.asked += 1

    def restore(self) -> None:
        for number, handler in self._before.items():
            signal.signal(number, handler)


def _log_file(checkpoint: Path | None) -> Path:
    if checkpoint is None:
        return Path(tempfile.mkstemp(prefix="sash-run-", suffix=".log")[1])
    checkpoint.mkdir(parents=True, exist_ok=True)
    return checkpoint / "spark.log"


@contextlib.contextmanager
def stderr_to(log: Path) -> Iterator[None]:
    """Append the standard error of a JVM that is started inside to a file; the JVM keeps the descriptor for good."""
    sys.stderr.flush()
    kept = os.dup(2)
    with log.open("ab") as file:
        os.dup2(file.fileno(), 2)
        try:
            yield
        finally:
            os.dup2(kept, 2)
            os.close(kept)
