"""The ASGI application: routes, refusals, the page."""

from __future__ import annotations

import contextlib
import logging
import re
import time
from collections.abc import AsyncIterator, Callable, Iterable, Mapping
from pathlib import Path
from typing import Any, Final, NamedTuple

from sash.errors import SashError, missing_extra
from sash.serve import answers
from sash.serve.formats import ARROW, as_arrow, as_json, document
from sash.serve.guard import SAFE_HEADERS, Guard
from sash.serve.limits import Deadline, Limits, NotAtOnce, Refused
from sash.serve.openapi import description
from sash.serve.opened import OpenStore
from sash.serve.parameters import Values, from_body, from_query, shown
from sash.wheel import TileStore

try:
    import anyio
    import anyio.to_thread
    from starlette.applications import Starlette
    from starlette.exceptions import HTTPException
    from starlette.requests import ClientDisconnect, Request
    from starlette.responses import Response
    from starlette.routing import Route as HttpRoute
except ImportError:
    raise missing_extra("starlette", "serve") from None

from sash.serve.metrics import Metrics

__all__ = ["application"]

_log = logging.getLogger("sash.serve")
_NAME: Final = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,63}")
_PAGE: Final = Path(__file__).parent / "page"
_JSON: Final = "application/json"
_QUICK: Final = 64  # values of an answer that is not worth a thread
_STATIC: Final = {"page.js": "text/javascript", "chart.js": "text/javascript", "page.css": "text/css", "plotly.js": "text/javascript"}


class Route(NamedTuple):
    """One thing that can be asked, as OpenAPI describes it."""

    name: str
    path: str
    about: str
    takes: tuple[str, ...] = ()
    methods: tuple[str, ...] = ("GET",)
    gives: tuple[str, ...] = (_JSON,)


_BULK: Final = (_JSON, ARROW)
_OF_STORE: Final[dict[str, tuple[Route, Callable[..., Any]]]] = {
    route.name: (route, answer)
    for route, answer in (
        (Route("store", "/api/stores/{store}", "What a store is, and up to when it is complete."), answers.facts),
        (Route("keys", "/api/stores/{store}/keys", "The keys of a store.", ("prefix", "n", "offset")), answers.keys),
        (
            Route(
                "lookback",
                "/api/stores/{store}/lookback",
                "Features: look-backs up to a time, for one key or many.",
                ("agg", "key", "back", "at", "provisional", "explain", "format"),
                ("GET", "POST"),
                _BULK,
            ),
            answers.lookback,
        ),
        (
            Route(
                "range",
                "/api/stores/{store}/range",
                "A range of time, whole or by steps, for one key, many, or all together.",
                ("agg", "key", "from", "to", "step", "points", "provisional", "explain", "format"),
                ("GET", "POST"),
                _BULK,
            ),
            answers.range_,
        ),
        (
            Route(
                "top",
                "/api/stores/{store}/top",
                "The keys of the largest values in a range.",
                ("agg", "n", "from", "to", "provisional", "format"),
                gives=_BULK,
            ),
            answers.top,
        ),
        (Route("plan", "/api/stores/{store}/plan", "How a range would be answered.", ("agg", "key", "from", "to")), answers.plan),
    )
}
_STORES: Final = Route("stores", "/api/stores", "The stores that are served.")
_PIPELINES: Final = Route("pipelines", "/api/pipelines", "The state of the pipelines that run beside the server.")
_METRICS: Final = Route("metrics", "/metrics", "Figures as Prometheus reads them.", gives=("text/plain",))


def application(
    stores: Any, token: str | Iterable[str] | None, *, limits: Limits | None, pipelines: Any, hosts: Iterable[str] | None
) -> Any:
    """Make the application; sash.serve.app() says what the arguments are."""
    limits = limits or Limits()
    served = {name: OpenStore(name, place, limits) for name, place in named(stores).items()}
    return _Server(served, Guard(token, hosts), limits, pipelines).app()


def _name_of(path: str | Path) -> str:
    """The last name of a path, or of a URI."""
    text = str(path)
    return text.partition("?")[0].rstrip("/").rpartition("/")[2] if "://" in text else Path(path).resolve().name


def named(stores: Any) -> dict[str, str | Path | TileStore]:
    """Stores by name: as a mapping says, else by the names of their folders."""
    if isinstance(stores, Mapping):
        found = list(stores.items())
    else:
        several = [stores] if isinstance(stores, str | Path | TileStore) else list(stores)
        found = [(_name_of(one.path if isinstance(one, TileStore) else one), one) for one in several]
    out: dict[str, str | Path | TileStore] = {}
    for name, place in found:
        if not isinstance(name, str) or not _NAME.fullmatch(name):
            raise ValueError(f"{name!r} can't be the name of a store: letters, digits, dot, dash and underscore can. Name it: NAME=FOLDER.")
        if name in out:
            raise ValueError(f"two stores have the name {name!r}. Name them: NAME=FOLDER.")
        out[name] = place
    return out


class _Server:
    """The routes of one application."""

    def __init__(self, stores: dict[str, OpenStore], guard: Guard, limits: Limits, pipelines: Any) -> None:
        self._stores, self._guard, self._limits, self._pipelines = stores, guard, limits, pipelines
        self._metrics = Metrics(list(stores.values()), pipelines)
        self._threads: anyio.CapacityLimiter | None = None
        self._asked = 0.0  # when a store was last asked something
        described = [_STORES, *(route for route, _ in _OF_STORE.values()), _PIPELINES, _METRICS]
        self._openapi = as_json(description(described, limits, guard.needs_token))

    def app(self) -> Any:
        """The application itself."""
        # Routes are tried one after the other: those that models ask come first.
        of_store = sorted(_OF_STORE.values(), key=lambda one: one[0].name not in ("lookback", "range"))
        routes = [
            *(
                HttpRoute(route.path, self._handler(route.name, self._answering(route, answer)), methods=list(route.methods))
                for route, answer in of_store
            ),
            HttpRoute("/", self._static("index.html", "text/html; charset=utf-8")),
            *(HttpRoute(f"/static/{file}", self._static(file, kind)) for file, kind in _STATIC.items()),
            HttpRoute("/healthz", self._handler("healthz", self._health)),
            HttpRoute("/openapi.json", self._handler("openapi", self._described)),
            HttpRoute(_METRICS.path, self._handler("metrics", self._exposed)),
            HttpRoute(_STORES.path, self._handler("stores", self._listed)),
            HttpRoute(_PIPELINES.path, self._handler("pipelines", self._running)),
        ]
        app = Starlette(routes=routes, lifespan=self._lifespan, exception_handlers={HTTPException: self._no_route})
        app.router.redirect_slashes = False
        return app

    async def _no_route(self, request: Request, error: Any) -> Response:
        """Refuse what is no route, or another method, in the same words as all else."""

        async def answer(request: Request) -> Response:
            if error.status_code == 405:
                methods = [name for name in error.headers["Allow"].split(", ") if name != "HEAD"]
                raise Refused(405, f"{shown(request.method)} is not answered here. Use {' or '.join(sorted(methods))}.")
            raise Refused(404, f"there is nothing at {shown(request.scope['path'])}. See /openapi.json for what there is.")

        response: Response = await self._handler("none", answer)(request)
        return response

    @contextlib.asynccontextmanager
    async def _lifespan(self, app: Any) -> AsyncIterator[None]:
        """While it runs, look at the stores now and then, so that questions seldom wait for new slices to be read."""

        def look() -> None:
            for store in self._stores.values():
                with contextlib.suppress(Refused), store.facts(Deadline(1.0)):
                    pass

        async def follow() -> None:
            while True:
                busy = time.monotonic() - self._asked < 10
                await anyio.sleep(max(self._limits.fresh / 2, 0.05) if busy else 1.0)
                await anyio.to_thread.run_sync(look)

        async with anyio.create_task_group() as tasks:
            tasks.start_soon(follow)
            yield
            tasks.cancel_scope.cancel()

    # --- every request

    def _handler(self, route: str, answer: Callable[[Request], Any]) -> Callable[[Request], Any]:
        """Let a request in, answer it, count it; what goes wrong becomes a sentence."""

        async def handle(request: Request) -> Response:
            begun = time.perf_counter()
            response = await self.guarded(request, answer)
            self._metrics.count(route, response.status_code, time.perf_counter() - begun)
            return response

        return handle

    async def guarded(self, request: Request, answer: Callable[[Request], Any]) -> Response:
        """Answer a request, or refuse it."""
        try:
            self._guard.check(request.scope["path"], dict(request.headers.raw))
            content = await answer(request)
        except Refused as error:
            return refusal(error)
        except ClientDisconnect:
            return refusal(Refused(400, "the request was broken off."))
        except Exception:
            _log.exception("a request failed")  # the log has what the answer must not
            return refusal(Refused(500, "the server failed to answer. Its log says why."))
        return content if isinstance(content, Response) else Response(as_json(content), media_type=_JSON, headers=SAFE_HEADERS)

    def _static(self, file: str, kind: str) -> Callable[[Request], Any]:
        async def answer(request: Request) -> Response:
            return Response(_file(file), media_type=kind, headers={**SAFE_HEADERS, "cache-control": "max-age=300"})

        return self._handler("page", answer)

    # --- one store

    def _answering(self, route: Route, answer: Callable[..., Any]) -> Callable[[Request], Any]:
        async def ask(request: Request) -> Any:
            deadline = Deadline(self._limits.seconds)
            store = self._stores.get(request.path_params["store"])
            if store is None:
                raise Refused(
                    404, f"there is no store {shown(request.path_params['store'])}. There are: {', '.join(self._stores) or 'none'}."
                )
            values = await self._values(request, route)

            def work(deadline: Deadline) -> Response:
                try:
                    found = answer(store, values, self._limits, deadline)
                except (Refused, NotAtOnce):
                    raise
                except (SashError, ValueError, TypeError, OverflowError) as error:
                    raise Refused(422 if isinstance(error, OverflowError) else 400, store.said(error)) from error
                if not isinstance(found, answers.Answer):
                    return Response(as_json(found), media_type=_JSON, headers=SAFE_HEADERS)
                if values.get("format") == "arrow":
                    return Response(as_arrow(store.name, found), media_type=ARROW, headers=SAFE_HEADERS)
                return Response(as_json(document(store.name, found)), media_type=_JSON, headers=SAFE_HEADERS)

            self._asked = time.monotonic()
            if route.name == "lookback" and len(values.get("key") or ()) * len(values.get("back") or ()) <= _QUICK:
                with contextlib.suppress(NotAtOnce):
                    return work(deadline.at_once())
            return await self._in_thread(lambda: work(deadline))

        return ask

    async def _in_thread(self, work: Callable[[], Response]) -> Response:
        """Run what may wait for a lock or a disk beside the loop; a few look-backs are answered sooner than a thread is called."""
        if self._threads is None:
            self._threads = anyio.CapacityLimiter(16)
        return await anyio.to_thread.run_sync(work, limiter=self._threads)

    async def _values(self, request: Request, route: Route) -> Values:
        if request.method != "POST":
            return from_query(request.scope["query_string"], route.takes, self._limits)
        if request.scope["query_string"]:
            raise Refused(400, "a POST has its parameters in the body, and this one has some in the URL too. Put them in the body.")
        kind = request.headers.get("content-type", "").partition(";")[0].strip().lower()
        if kind != _JSON:
            raise Refused(415, f"the body is {shown(kind)}. Send {_JSON}.")
        body = b""
        async for chunk in request.stream():
            body += chunk
            if len(body) > self._limits.body:
                raise Refused(413, f"the body has more than {self._limits.body:,} bytes. Ask in parts.")
        return from_body(body, route.takes, self._limits)

    # --- the server

    async def _listed(self, request: Request) -> Any:
        from_query(request.scope["query_string"], (), self._limits)

        def each() -> list[Any]:
            out: list[Any] = []
            for store in self._stores.values():
                try:
                    out.append(answers.facts(store, Values(), self._limits, Deadline(self._limits.seconds)))
                except Refused as error:
                    out.append({"store": store.name, "error": str(error)})
            return out

        return {"stores": await anyio.to_thread.run_sync(each), "limits": self._limits_told()}

    def _limits_told(self) -> dict[str, Any]:
        return {name: getattr(self._limits, name) for name in ("keys", "steps", "lookbacks", "cells", "seconds")}

    async def _running(self, request: Request) -> Any:
        from_query(request.scope["query_string"], (), self._limits)
        return {"pipelines": [] if self._pipelines is None else self._pipelines.snapshot()}

    async def _exposed(self, request: Request) -> Response:
        text = await anyio.to_thread.run_sync(self._metrics.text)
        return Response(text, media_type="text/plain; version=0.0.4; charset=utf-8", headers=SAFE_HEADERS)

    async def _health(self, request: Request) -> Any:
        return {"ok": True}

    async def _described(self, request: Request) -> Response:
        return Response(self._openapi, media_type=_JSON, headers=SAFE_HEADERS)


def refusal(error: Refused) -> Response:
    """A refusal as a response: its sentence as JSON."""
    headers = dict(SAFE_HEADERS)
    if error.status == 401:
        headers["www-authenticate"] = "Bearer"
    if error.again is not None:
        headers["retry-after"] = str(error.again)
    return Response(as_json({"error": str(error)}), error.status, headers, _JSON)


_files: dict[str, bytes] = {}


def _file(name: str) -> bytes:
    """A file of the page; plotly's JavaScript comes from its Python package."""
    if name not in _files:
        if name == "plotly.js":
            from importlib.util import find_spec

            found = find_spec("plotly")
            if found is None or found.origin is None:
                raise Refused(404, "plotly is not installed: the page has no chart. Install the extra: pip install sash[serve].")
            _files[name] = (Path(found.origin).parent / "package_data" / "plotly.min.js").read_bytes()
        else:
            _files[name] = (_PAGE / name).read_bytes()
    return _files[name]
