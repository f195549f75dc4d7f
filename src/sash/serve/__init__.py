"""Answers over HTTP: the tiles of running or finished streams, a page to look at them, and metrics.

>>> from sash import serve
>>> application = serve.app("tiles")                                    # doctest: +SKIP
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from sash.serve.limits import Limits
    from sash.wheel import TileStore

__all__ = ["app"]


def app(
    stores: str | Path | TileStore | Iterable[str | Path | TileStore] | Mapping[str, str | Path | TileStore],
    token: str | Iterable[str] | None = None,
    *,
    limits: Limits | None = None,
    pipelines: Any = None,
    hosts: Iterable[str] | None = None,
) -> Any:
    """Make the ASGI application that answers from these stores, and from no others.

    `stores` are folders or TileStores, by name where a mapping is given, else by the name of their folder. With `token`, or several, a
    request must carry one as `Authorization: Bearer ...`. `pipelines` is what sash.spark.listen() gave: its figures are shown
    and exported. With `hosts`, requests to other names of this machine are refused.

    Cost: a question about an open store is as dear as the wheel's answer; the first one opens the store.

    >>> uvicorn.run(sash.serve.app({"fares": "data/fares"}, token="..."))  # doctest: +SKIP
    """
    from sash.serve.application import application

    return application(stores, token, limits=limits, pipelines=pipelines, hosts=hosts)
