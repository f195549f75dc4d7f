"""The OpenAPI description of the server, made from the list of routes and the list of parameters."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from sash import __version__
from sash.serve.limits import Limits
from sash.serve.parameters import described

__all__ = ["description"]


def description(routes: Iterable[Any], limits: Limits, needs_token: bool) -> dict[str, Any]:
    """Describe the routes: what each answers, what it takes, how it refuses."""
    paths: dict[str, Any] = {}
    for route in routes:
        paths.setdefault(route.path, {})
        for method in route.methods:
            paths[route.path][method.lower()] = _operation(route, method, limits)
    document: dict[str, Any] = {
        "openapi": "3.1.0",
        "info": {"title": "Sash", "version": __version__, "description": "Aggregates over any range of time, from tile stores."},
        "paths": paths,
        "components": {
            "schemas": {"Error": {"type": "object", "properties": {"error": {"type": "string"}}, "required": ["error"]}},
            "securitySchemes": {"token": {"type": "http", "scheme": "bearer"}},
        },
    }
    return {**document, "security": [{"token": []}]} if needs_token else document


def _operation(route: Any, method: str, limits: Limits) -> dict[str, Any]:
    parameters = [dict(described(name, limits)) for name in route.takes]
    place = [{"name": "store", "in": "path", "required": True, "schema": {"type": "string"}}] if "{store}" in route.path else []
    operation: dict[str, Any] = {
        "operationId": route.name + ("" if method == "GET" else "_" + method.lower()),
        "summary": route.about,
        "parameters": place + (parameters if method == "GET" else []),
        "responses": {
            "200": {"description": "The answer.", "content": {kind: {} for kind in route.gives}},
            **{code: _error(why) for code, why in _REFUSALS.items()},
        },
    }
    if method == "POST":
        schema = {"type": "object", "properties": {p["name"]: p["schema"] for p in parameters}, "additionalProperties": False}
        operation["requestBody"] = {"required": True, "content": {"application/json": {"schema": schema}}}
    return operation


_REFUSALS = {
    "400": "A parameter is wrong: the sentence names it, the rule and the fix.",
    "401": "The token is missing or wrong.",
    "404": "There is no such store, or it is gone.",
    "409": "The store has no complete slice yet.",
    "422": "More than one request may ask for.",
    "503": "The store is being opened or can't be read; Retry-After says when to ask again.",
}


def _error(why: str) -> dict[str, Any]:
    return {"description": why, "content": {"application/json": {"schema": {"$ref": "#/components/schemas/Error"}}}}
