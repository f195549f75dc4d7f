"""The queries of a pipeline while they run: shown, stopped between two batches, started again where the network failed."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any, Final

from sash.pipeline.failures import is_passing, reason
from sash.pipeline.progress import Meter, Screen

if TYPE_CHECKING:
    from sash.pipeline.job import Job

__all__ = ["Watch"]

_LONGEST: Final = 60.0  # seconds between two tries


class Watch:
    """Starts the queries of a job and looks after them until all have ended, one has failed for good, or `stop` says so."""

    def __init__(self, job: Job, meters: Mapping[str, Meter], screen: Screen, stop: Callable[[], int]) -> None:
        self._job, self._meters, self._screen, self._stop = job, meters, screen, stop
        self._tried = dict.fromkeys(meters, 0)  # since the query last did something
        self._due: dict[str, float] = {}  # queries that wait to be started again, and when
        self.queries: dict[str, Any] = job.start()

    def until_done(self) -> dict[str, Any]:
        """Watch, and give the errors of the queries that failed."""
        told = failed = False
        running = True
        while running or self._due:
            # Asked before anything is mended: a query that fails meanwhile is seen to in the next round.
            running = bool(self._due) or any(query.isActive for query in self.queries.values())
            self._show()
            if self._stop():
                self._due.clear()
                if not told:
                    print("stopping after the running batches; Ctrl-C again stops at once", flush=True)
                    told = True
                self._stop_between(at_once=self._stop() > 1)
            elif not failed:
                failed = not self._mend()
            if failed:
                self._due.clear()
                for query in self.queries.values():
                    query.stop()
            time.sleep(0.1)
        self._show(last=True)
        return {name: query.exception() for name, query in self.queries.items() if query.exception() is not None}

    def _show(self, last: bool = False) -> None:
        changed = [self._meters[name] for name, query in self.queries.items() if self._meters[name].read(query)]
        for meter in changed:
            self._tried[meter.name] = 0
        self._screen.show(changed, last=last)

    def _stop_between(self, at_once: bool) -> None:
        for query in self.queries.values():
            if query.isActive and (at_once or not query.status["isTriggerActive"] or _between(query)):
                query.stop()

    def _mend(self) -> bool:
        """Start queries again whose fault may have gone away; False where one has failed for good."""
        now = time.monotonic()
        for name, query in self.queries.items():
            if name in self._due:
                if now >= self._due[name]:
                    del self._due[name]
                    self.queries[name] = self._job.start_one(name)
            elif not query.isActive and (why := query.exception()) is not None:
                limit = self._job.pipeline.retries
                if not is_passing(why) or self._tried[name] >= limit:
                    return False
                wait = min(2.0 ** self._tried[name], _LONGEST)
                self._tried[name] += 1
                self._due[name] = now + wait
                said = f"{name}: {reason(why)}; again in {wait:.0f} s ({self._tried[name]} of {limit})"
                print(said, file=sys.stderr, flush=True)
        return True


def _between(query: Any) -> bool:
    """Whether a query is between two batches: a batch that is cut off is done again, so this only saves work."""
    return not any(word in query.status["message"] for word in ("Processing", "cleaning", "batch"))
