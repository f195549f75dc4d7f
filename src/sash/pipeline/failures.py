"""Why a query failed, in a line; and whether it may go better when it is tried again."""

from __future__ import annotations

import re
from typing import Any, Final

__all__ = ["first_line", "is_passing", "reason"]

_OURS: Final = ("sash.errors.", "sash.wheel.errors.", "sash.pipeline.values.")
_PYTHON: Final = re.compile(r"^(?:[A-Za-z_][\w.]*\.)?([A-Z]\w*(?:Error|Exception|Exit|Interrupt|Warning)): +(\S.*)$", re.M)
_CAUSE: Final = re.compile(r"^Caused by: ([\w.$]+)(?:: (.*))?$", re.M)
_FAILED: Final = re.compile(r"^\[STREAM_FAILED\] Query \[[^\]]*\] terminated with exception: ")
_STATE: Final = re.compile(r"\s*SQLSTATE: \w+\s*$")
_CLASS: Final = re.compile(r"^(?:[a-z]\w*\.){2,}(?=[A-Z])")

# What the network does, not the pipeline: these may go away by themselves. Looked for in what Spark tells, the classes of causes too.
_PASSING: Final = re.compile(
    r"org\.apache\.kafka\.common\.errors\.(?:Timeout|Disconnect|Network|Retriable|LeaderNotAvailable|NotLeader|Coordinator"
    r"|BrokerNotAvailable|UnknownTopicOrPartition)|org\.apache\.kafka\.common\.KafkaException: Failed to (?:construct|create)"
    r"|java\.net\.(?:Connect|Socket|UnknownHost|NoRouteToHost|PortUnreachable)|java\.util\.concurrent\.TimeoutException"
    r"|Connection (?:refused|reset|timed out)|Broken pipe|SlowDown|ServiceUnavailable|Timed out waiting for a node assignment"
    r"|Timeout of \d+ms expired|could not be determined|Cannot fetch record for offset"
)


def reason(error: Any) -> str:
    """What went wrong in a query: Sash's own words where they are in it, else the innermost cause that Python or Spark tells.

    >>> reason("Return Message: Traceback (most recent call last):\\n  File x\\nValueError: fare is text\\n")
    'ValueError: fare is text'
    """
    text = str(error)
    for line in text.splitlines():
        for kind in _OURS:
            if kind in line and (said := line.partition(kind)[2].partition(": ")[2].strip()):
                return said
    if "Traceback (most recent call last)" in text and (found := _PYTHON.findall(text)):
        name, said = found[-1]
        return f"{name}: {_without_state(said)}"
    if causes := _CAUSE.findall(text):
        name, said = causes[-1]
        return f"{name.rpartition('.')[2]}: {_without_state(said)}" if said else str(name.rpartition(".")[2])
    return first_line(error)


def first_line(error: Any) -> str:
    """The first line of an error, without what only Spark's own log needs."""
    text = str(error).strip()
    line = _FAILED.sub("", text.splitlines()[0]) if text else type(error).__name__
    return _without_state(_CLASS.sub("", line))


def _without_state(line: str) -> str:
    return _STATE.sub("", line).strip()


def is_passing(error: Any) -> bool:
    """Whether the fault may go away by itself: a broker, a server or the network that does not answer."""
    text = str(error)
    return not any(kind in text for kind in _OURS) and _PASSING.search(text) is not None
