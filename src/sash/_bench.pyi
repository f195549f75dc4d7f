"""The native loops of `sash bench`: built only where benchmarks run."""

from typing import Any

def __getattr__(name: str) -> Any: ...
