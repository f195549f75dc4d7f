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

__all__ = ["add_arguments", "run", "start_spark", "stderr_to"]


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the options of `sash run`."""
    parser.add_argument("pipeline", type=Path, metavar="PIPELINE.toml", help="what to compute: source, windows, rolling, tiles, sinks")
    parser.add_argument("--master", default=None, help="where Spark runs (default: this machine, all cores)")
    parser.add_argument("--check", action="store_true", help="read and plan the pipeline, say what is wrong, and stop")
    parser.add_argument("--batch", action="store_true", help="run once over what is there, to the same sinks; run again, it is replaced")
    parser.add_argument("--from", dest="start", metavar="TIME", help="with --batch: results from this time on")
    parser.add_argument("--to", dest="end", metavar="TIME", help="with --batch: results before this time")
    parser.add_argument("--log", type=Path, metavar="FILE", help="where Spark's own messages go (default: spark.log in the checkpoint)")
    parser.add_argument(
        "--serve", nargs="?", const=str(PORT), metavar="HOST:PORT", help=f"answer from the tiles meanwhile, with a page (127.0.0.1:{PORT})"
    )
    parser.add_argument("--metrics", metavar="HOST:PORT", help="figures for Prometheus; a port alone is on 127.0.0.1")
    add_address(parser)


def run(args: argparse.Namespace) -> int:
    """Run a pipeline; 0 when it has read all there is or was stopped, 1 if it failed."""
    if not args.batch and (args.start is not None or args.end is not None):
        raise SashError("--from and --to say of which time a batch is. Add --batch, or drop them: a stream goes on from its checkpoint.")
    pipeline = document.read(args.pipeline)
    from sash.pipeline.failures import reason
    from sash.pipeline.job import Job
    from sash.pipeline.progress import Meter, Screen, source_files
    from sash.pipeline.watch import Watch
    from sash.spark.tile_sink import local_path

    serving = _Serving.of(args)
    log = args.log or _log_file(local_path(pipeline.checkpoint))
    print(f"{pipeline.name}: {', '.join(section.name for section in pipeline.sections)}; Spark's messages go to {log}", flush=True)
    spark = start_spark(pipeline, log, args.master)
    stopping = _Stopping()
    try:
        if args.batch:
            return _run_batch(spark, pipeline, args)
        job = Job(spark, pipeline, dry=args.check)
        if args.check:
            print("nothing is wrong with it")
            return 0
        if ui := spark.sparkContext.uiWebUrl:
            print(f"Spark's own page: {ui}", flush=True)
        files = source_files(pipeline.source.path) if pipeline.every is None and pipeline.source.format != "table" else None
        meters = {name: Meter(name, files, local_path(job.checkpoint(name))) for name in job.outputs}
        with serving.beside(spark, job):
            try:
                watch = Watch(job, meters, Screen(list(meters.values())), lambda: stopping.asked)
            except Exception as error:
                raise SashError(reason(error)) from error
            failed = watch.until_done()
            if args.serve and not failed and not stopping.asked:
                print("done: all that the source has is read; the page stays until Ctrl-C", flush=True)
                while not stopping.asked:
                    time.sleep(0.1)
        for name, why in failed.items():
            print(f"sash run: {name} failed: {reason(why)}", file=sys.stderr)
        if failed:
            print(f"sash run: what was done is kept; the next run goes on from there. Spark's messages are in {log}", file=sys.stderr)
            return 1
        print("stopped; the next run goes on from here" if stopping.asked else "done: all that the source has is read", flush=True)
        return 0
    finally:
        stopping.restore()
        spark.stop()


def _run_batch(spark: Any, pipeline: document.Pipeline, args: argparse.Namespace) -> int:
    from sash.pipeline.batch import BatchJob
    from sash.pipeline.failures import reason
    from sash.pipeline.replacing import Stretch

    try:
        stretch = Stretch.read(args.start, args.end)
    except ValueError as error:
        raise SashError(str(error)) from error
    job = BatchJob(spark, pipeline, stretch)
    if args.check:
        print("nothing is wrong with it")
        return 0
    try:
        for said in job.run():
            print(said, flush=True)
    except SashError:
        raise
    except Exception as error:  # Spark's, whatever it is
        raise SashError(reason(error)) from error
    print("done", flush=True)
    return 0


def start_spark(pipeline: document.Pipeline, log: Path, master: str | None = None) -> Any:
    """Start Spark with the packages that the pipeline needs; its own page is on, on this machine alone, unless [spark] says otherwise."""
    from sash.pipeline.connectors import session_settings, unresolved
    from sash.spark import session

    conf: dict[str, Any] = {"spark.ui.enabled": "true", **session_settings(pipeline), **({"master": master} if master else {})}
    said_before = log.stat().st_size if log.exists() else 0
    try:
        with stderr_to(log):
            return session(f"sash run {pipeline.name}", **conf)
    except SashError:
        raise
    except Exception as error:  # Spark did not start; why, it told in its log
        with log.open("rb") as file:
            file.seek(said_before)
            why = unresolved(file.read().decode(errors="replace"))
        if why is None:
            raise SashError(f"Spark did not start: {str(error).splitlines()[0]} What it said is in {log}") from error
        raise document.PipelineErrors(pipeline.file, [(pipeline.line(("packages",)), why)]) from error


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
    if checkpoint is not None:
        with contextlib.suppress(OSError):  # a path that can't be written is told with its line
            checkpoint.mkdir(parents=True, exist_ok=True)
            return checkpoint / "spark.log"
    return Path(tempfile.mkstemp(prefix="sash-run-", suffix=".log")[1])


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
