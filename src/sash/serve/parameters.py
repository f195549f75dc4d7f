"""The parameters of requests: one list that requests are read by and that the OpenAPI description is made from."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any, Final, NamedTuple
from urllib.parse import parse_qsl

from sash.serve.limits import Limits, Refused

__all__ = ["PARAMETERS", "Parameter", "Values", "from_body", "from_query", "shown"]


class Parameter(NamedTuple):
    """One name that a request may carry."""

    kind: str  # text, texts, keys, number, truth, choice
    about: str
    example: Any = None
    choices: tuple[str, ...] = ()
    least: int = 0
    most: str | None = None  # the limit that holds for it, a field of Limits


PARAMETERS: Final[dict[str, Parameter]] = {
    "agg": Parameter("texts", "Which aggregations; all of the store where left out. Several as agg=a&agg=b or agg=a,b.", ["fare"]),
    "key": Parameter("keys", "Which keys, values of several columns as A,B; all keys together where left out.", ["midtown"], most="keys"),
    "back": Parameter("texts", "Look-backs: how far back from `at`, e.g. 1h. Several as back=1h&back=7d.", ["1h", "24h"], most="lookbacks"),
    "at": Parameter("text", "Where look-backs end: `watermark`, `now`, or a time; it is cut to the store's grain.", "watermark"),
    "from": Parameter("text", "A time, or a length of time back from the watermark; the first slice where left out.", "7d"),
    "to": Parameter("text", "Up to and without this time; the watermark where left out.", "2024-01-02 00:00"),
    "step": Parameter("text", "The length of a step, a multiple of the store's grain; or `auto`, which picks a level.", "1h"),
    "points": Parameter("number", "With step=auto: about how many steps are wanted.", 300, least=1, most="steps"),
    "n": Parameter("number", "How many keys.", 10, least=1, most="keys"),
    "prefix": Parameter("text", "Only keys that begin with this.", "mid"),
    "offset": Parameter("number", "How many keys to leave out first.", 0),
    "explain": Parameter("truth", "Say how the answer is put together and how many combines it took.", True),
    "provisional": Parameter("truth", "Add what is not final yet, where the stream publishes it.", True),
    "format": Parameter("choice", "json, or arrow: a stream of record batches, for bulk reads.", "json", choices=("json", "arrow")),
}


class Values(dict[str, Any]):
    """The parameters of one request."""

    def texts(self, name: str) -> list[str] | None:
        """A list of texts; None where it was left out."""
        found: list[str] | None = self.get(name)
        return found


def shown(value: Any) -> str:
    """A value as an error may show it: short."""
    text = repr(value)
    return text if len(text) <= 80 else text[:76] + "...'"


def from_query(query: bytes, takes: Sequence[str], limits: Limits) -> Values:
    """Read the parameters of a URL, whatever bytes they are."""
    try:
        pairs = parse_qsl(query.decode("latin-1"), keep_blank_values=True, errors="replace", max_num_fields=2 * limits.keys + 100)
    except ValueError:
        raise Refused(422, f"the URL has more than {2 * limits.keys + 100:,} parameters. Ask in parts, or with POST.") from None
    given: dict[str, list[str]] = {}
    for name, text in pairs:
        given.setdefault(name, []).append(text)
    return Values({name: _read(_known(name, takes), name, texts, limits) for name, texts in given.items()})


def from_body(body: bytes, takes: Sequence[str], limits: Limits) -> Values:
    """Read the parameters of a JSON body: an object of the same names, lists where several are meant."""
    try:
        document = json.loads(body)
    except (ValueError, RecursionError):
        raise Refused(400, 'the body is not JSON. Send an object, e.g. {"key": ["a", "b"], "back": ["1h"]}.') from None
    if not isinstance(document, dict):
        raise Refused(400, f"the body is {shown(document)}. Send an object of parameters.")
    out = Values()
    for name, value in document.items():
        parameter = _known(name, takes)
        values = value if isinstance(value, list) and parameter.kind in ("texts", "keys") else [value]
        out[name] = _read(parameter, name, values, limits)
    return out


def _known(name: str, takes: Sequence[str]) -> Parameter:
    if name not in takes:
        raise Refused(400, f"{shown(name)} is not a parameter here. It takes {', '.join(takes) or 'none'}.")
    return PARAMETERS[name]


def _read(parameter: Parameter, name: str, values: Sequence[Any], limits: Limits) -> Any:
    """Read what was given under one name."""
    most = None if parameter.most is None else getattr(limits, parameter.most)
    if parameter.kind == "keys":
        _few(name, values, most)
        return [_key(name, value, limits) for value in values]
    for value in values:
        if isinstance(value, str) and len(value) > limits.text:
            raise Refused(400, f"{name} has {len(value)} characters. Use up to {limits.text}.")
    if parameter.kind == "texts":
        texts = [text.strip() for value in values for text in _text(name, value).split(",")]
        _few(name, texts, most)
        return texts
    if len(values) != 1:
        raise Refused(400, f"{name} is given {len(values)} times. Give it once.")
    value = values[0]
    match parameter.kind:
        case "truth":
            return _truth(name, value)
        case "number":
            return _number(name, value, parameter.least, most)
        case "choice":
            if value not in parameter.choices:
                raise Refused(400, f"{name}={shown(value)} is unknown. Use {' or '.join(parameter.choices)}.")
            return value
    return _text(name, value)


def _few(name: str, values: Sequence[Any], most: int | None) -> None:
    if most is not None and len(values) > most:
        raise Refused(422, f"{name} has {len(values):,} values. One request takes up to {most:,}: ask in parts.")


def _text(name: str, value: Any) -> str:
    if not isinstance(value, str) or not value.strip():
        raise Refused(400, f"{name}={shown(value)} is not a text. Use e.g. {name}={_example(name)}.")
    return value.strip()


def _truth(name: str, value: Any) -> bool:
    if isinstance(value, bool):
        return value
    if value in ("true", "1", "false", "0"):
        return value in ("true", "1")
    raise Refused(400, f"{name}={shown(value)} is neither true nor false. Use {name}=true.")


def _number(name: str, value: Any, least: int, most: int | None) -> int:
    digits = isinstance(value, str) and value.isascii() and value.isdecimal() and len(value) <= 18
    if not digits and not (isinstance(value, int) and not isinstance(value, bool)):
        raise Refused(400, f"{name}={shown(value)} is not a whole number. Use e.g. {name}={_example(name)}.")
    number = int(value)
    if number < least or number >= 2**62:
        raise Refused(400, f"{name}={shown(value)} is out of range. Use {least} or more.")
    if most is not None and number > most:
        raise Refused(422, f"{name}={number:,} is more than one request takes. Use up to {most:,}.")
    return number


def _key(name: str, value: Any, limits: Limits) -> Any:
    """A key: a text as in a URL, a JSON value, or a list of them for several columns."""
    parts = value if isinstance(value, list) else [value]
    for part in parts:
        if part is not None and not isinstance(part, str | int | float | bool):
            raise Refused(400, f"{name}={shown(part)} is not a key. Use texts, numbers, or a list with a value per key column.")
        if isinstance(part, str) and len(part) > limits.text:
            raise Refused(400, f"a {name} has {len(part)} characters. Use up to {limits.text}.")
    return tuple(parts) if isinstance(value, list) else value


def _example(name: str) -> str:
    example = PARAMETERS[name].example
    return str(example[0] if isinstance(example, list) else example)


def described(name: str, limits: Limits) -> Mapping[str, Any]:
    """The OpenAPI description of a parameter."""
    parameter = PARAMETERS[name]
    most = None if parameter.most is None else getattr(limits, parameter.most)
    text: dict[str, Any] = {"type": "string", "maxLength": limits.text}
    match parameter.kind:
        case "texts" | "keys":
            schema: dict[str, Any] = {"type": "array", "items": text, **({"maxItems": most} if most else {})}
        case "number":
            schema = {"type": "integer", "minimum": parameter.least, **({"maximum": most} if most else {})}
        case "truth":
            schema = {"type": "boolean"}
        case "choice":
            schema = {"type": "string", "enum": list(parameter.choices)}
        case _:
            schema = text
    return {"name": name, "in": "query", "required": False, "description": parameter.about, "schema": schema, "example": parameter.example}
