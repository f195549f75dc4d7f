"""A user's callables as machine code: define(..., compiled=True).

numba compiles lift, combine, lower and inverse to function pointers on partials of fixed size, which the core calls
without Python. A partial is what the identity is: a number, or a flat tuple of numbers; a field is int64 if it is an
integer all along, else float64. Integers wrap at 64 bits, and a division by zero gives inf or NaN, as in NumPy. Nothing
in the core could catch an exception, so a callable with a `raise` or an `assert` is refused.
"""

from __future__ import annotations

import dis
import functools
import struct
import types
from collections.abc import Callable
from typing import Any, Final

from sash import codec
from sash.agg.base import ItemType, Native
from sash.callables import value_facts
from sash.errors import Undescribed, missing_extra

__all__ = ["compiler"]

_KINDS: Final = ("int64", "float64", "truth")
_MOST: Final = 64
_OPTIONAL: Final = 4  # added to the kind of a result that may be None
_made: dict[bytes, tuple[Native, Any]] = {}  # the pointers, and what keeps them alive; by the callables' fingerprint
_unnamed: list[Any] = []  # keeps alive what was compiled of callables that have none


def _numba() -> Any:
    try:
        import numba
    except ImportError:
        raise missing_extra("numba", "numba") from None
    return numba


def _tuple(*fields: Any) -> tuple[Any, ...]:
    return fields


def compiler(
    lift: Callable[..., Any],
    combine: Callable[[Any, Any], Any],
    lower: Callable[[Any], Any] | None,
    inverse: Callable[[Any, Any], Any] | None,
    identity: Any,
) -> Callable[[ItemType], Native | None]:
    """Give the function that compiles the callables for an item type; ask it again after a constant changed."""
    fields = identity if isinstance(identity, tuple) else (identity,)
    if not fields or len(fields) > _MOST or not all(type(field) in (int, float, bool) for field in fields):
        raise TypeError(
            f"identity={identity!r} can't be compiled. compiled=True takes a number or a flat tuple of up to {_MOST} numbers; "
            "leave it out for other partials."
        )
    _numba()
    for name, function in (("lift", lift), ("combine", combine), ("lower", lower), ("inverse", inverse)):
        if (code := getattr(function, "__code__", None)) and any(step.opname == "RAISE_VARARGS" for step in dis.get_instructions(code)):
            raise TypeError(
                f"{name} may raise, and nothing could catch that in the core. Give a value for every item and partial, NaN if there is "
                "no other, or leave compiled=True out."
            )

    def run_time(item_type: ItemType) -> Native | None:
        if item_type == "object":
            return None
        try:
            key = codec.fingerprint((tuple(value_facts(f) for f in (lift, combine, lower, inverse)), identity, item_type))
        except Undescribed:
            native, alive = _compile(lift, combine, lower or (lambda p: p), inverse, identity, item_type)
            _unnamed.append(alive)
            return native
        if key not in _made:
            _made[key] = _compile(lift, combine, lower or (lambda p: p), inverse, identity, item_type)
        return _made[key][0]

    return run_time


def _fresh(value: Any, made: dict[int, Any]) -> Any:
    """Make a fresh copy of a function and of the compiled functions that it calls: numba reads a constant only once."""
    if id(value) in made:
        return made[id(value)]
    if isinstance(inner := getattr(value, "py_func", None), types.FunctionType) and hasattr(value, "targetoptions"):
        made[id(value)] = value  # where it calls itself
        made[id(value)] = _numba().jit(**{**value.targetoptions, "error_model": "numpy"})(_fresh(inner, made))
        return made[id(value)]
    if not isinstance(value, types.FunctionType):
        return value
    made[id(value)] = value
    names = {name: _fresh(value.__globals__[name], made) for name in value.__code__.co_names if name in value.__globals__}
    cells = tuple(types.CellType(_fresh(cell.cell_contents, made)) for cell in value.__closure__ or ())
    made[id(value)] = types.FunctionType(value.__code__, {**value.__globals__, **names}, value.__name__, value.__defaults__, cells)
    return made[id(value)]


def _compile(lift: Any, combine: Any, lower: Any, inverse: Any, identity: Any, item_type: ItemType) -> tuple[Native, Any]:
    numba = _numba()
    # Only the functions around them call these, so they are inlined there and get no entry of their own for Python and C.
    jit = functools.partial(numba.njit, error_model="numpy", forceinline=True, no_cpython_wrapper=True, no_cfunc_wrapper=True)
    anew: dict[int, Any] = {}
    lift, combine, lower = (jit(_fresh(getattr(f, "py_func", f), anew)) for f in (lift, combine, lower))
    types = numba.types
    scalar = not isinstance(identity, tuple)
    wanted = [_KINDS[type(field) is float] for field in ((identity,) if scalar else identity)]

    # The fields that are integers in the identity may be floats in a lifted item, and so on: until nothing changes.
    for _ in range(len(wanted) + 2):
        before = list(wanted)
        _widen(wanted, _result("lift", lift, (getattr(types, item_type),)), "lift", identity)
        partial = _type(types, wanted, scalar)
        _widen(wanted, _result("combine", combine, (partial, partial)), "combine", identity)
        if wanted == before:
            break
    partial = _type(types, wanted, scalar)
    if inverse is not None:
        inverse = jit(_fresh(getattr(inverse, "py_func", inverse), anew))
        _widen(list(wanted), _result("inverse", inverse, (partial, partial)), "inverse", identity)
    results, plain = _lowered(_result("lower", lower, (partial,)))

    words = types.CPointer(types.int64)
    alive = {
        "lift": _function(numba, lift, types.void(words, getattr(types, item_type)), _lift_source(wanted, scalar)),
        "combine": _function(numba, combine, types.void(words, words, words), _combine_source(wanted, scalar)),
        "lower": _function(numba, lower, types.void(words, words), _lower_source(wanted, scalar, results, plain)),
    }
    if inverse is not None:
        alive["inverse"] = _function(numba, inverse, types.void(words, words, words), _combine_source(wanted, scalar))

    params = [float(alive[name].address) if name in alive else 0.0 for name in ("lift", "combine", "lower", "inverse")]
    params += [len(wanted), len(results)]
    for kind, field in zip(wanted, (identity,) if scalar else identity, strict=True):
        (bits,) = struct.unpack("<Q", struct.pack("<d", float(field)) if kind == "float64" else struct.pack("<q", int(field)))
        params += [_KINDS.index(kind), bits >> 32, bits & 0xFFFFFFFF]
    params += results
    lowers = tuple(f"field{i}" for i in range(len(results)))
    return Native("compiled", tuple(params), lowers, None if plain else _tuple), alive  # type: ignore[arg-type]


def _result(name: str, function: Any, arguments: tuple[Any, ...]) -> Any:
    """Compile a callable for argument types, and give the type of its result."""
    numba = _numba()
    try:
        function.compile(arguments)
        return numba.types.unliteral(function.overloads[arguments].signature.return_type)
    except numba.core.errors.NumbaError as error:
        reason = str(error).strip().splitlines()
        said = next((line.strip() for line in reversed(reason) if "Error" in line or "Cannot" in line), reason[0] if reason else "")
        raise TypeError(
            f"{name} can't be compiled for {', '.join(map(str, arguments))}: {said} "
            "Use arithmetic on numbers and flat tuples only, or leave compiled=True out."
        ) from error


def _kind(type_: Any, name: str) -> str:
    types = _numba().types
    if isinstance(type_, types.Boolean | types.Integer):
        return "int64"
    if isinstance(type_, types.Float):
        return "float64"
    raise TypeError(f"{name} gives a field of type {type_}. A compiled partial has numbers only; leave compiled=True out for others.")


def _widen(wanted: list[str], found: Any, name: str, identity: Any) -> None:
    """Make the fields of a partial wide enough for what a callable gives."""
    types = _numba().types
    fields = list(found.types) if isinstance(found, types.BaseTuple) else None
    count = None if fields is None else len(fields)
    tuple_ = isinstance(identity, tuple)
    if (count or 1) != len(wanted) or (fields is None) == tuple_:
        given = "a number" if fields is None else f"a tuple of {count}"
        due = f"a tuple of {len(wanted)}" if tuple_ else "a number"
        raise TypeError(
            f"{name} gives {given}, and identity={identity!r} is {due}. "
            "A compiled partial keeps one size; leave compiled=True out for one that grows."
        )
    for i, field in enumerate([found] if fields is None else fields):
        if _kind(types.unliteral(field), name) == "float64":
            wanted[i] = "float64"


def _type(types: Any, wanted: list[str], scalar: bool) -> Any:
    fields = [getattr(types, kind) for kind in wanted]
    return fields[0] if scalar else types.Tuple(fields)


def _lowered(found: Any) -> tuple[list[int], bool]:
    """Give the kind of each result, and whether there is just one, not a tuple."""
    types = _numba().types
    optional = isinstance(found, types.Optional)
    if optional:
        found = types.unliteral(found.type)
    plain = not isinstance(found, types.BaseTuple)
    fields = [found] if plain else [types.unliteral(field) for field in found.types]
    if len(fields) > _MOST or not fields:
        raise TypeError(f"lower gives {len(fields)} fields. Compiled, it gives from 1 to {_MOST}.")
    return [(2 if isinstance(f, types.Boolean) else _KINDS.index(_kind(f, "lower"))) + _OPTIONAL * optional for f in fields], plain


# --- the functions around the callables: they read and write fields as words, an integer or the bits of a float


@functools.cache
def _casts() -> tuple[Any, Any]:
    """Give the functions from a word to the float that its bits are, and back; ``.view()`` is a call that may raise, these vanish."""
    numba = _numba()
    types = numba.types

    def cast(source: Any, target: Any) -> Any:
        def code(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
            return builder.bitcast(arguments[0], context.get_value_type(target))

        return numba.extending.intrinsic(lambda typing, x: (target(source), code))

    return cast(types.int64, types.float64), cast(types.float64, types.int64)


def _read(pointer: str, wanted: list[str], scalar: bool) -> str:
    fields = [f"real({pointer}[{i}])" if kind == "float64" else f"{pointer}[{i}]" for i, kind in enumerate(wanted)]
    return fields[0] if scalar else f"({', '.join(fields)},)"


def _write(kinds: list[str], scalar: bool, first: int = 0) -> list[str]:
    values = [f"r{'' if scalar else f'[{i}]'}" for i in range(len(kinds))]
    words = [f"bits({value})" if kind == "float64" else value for kind, value in zip(kinds, values, strict=True)]
    return [f"out[{first + i}] = {word}" for i, word in enumerate(words)]


def _lift_source(wanted: list[str], scalar: bool) -> list[str]:
    return ["out, x", "r = function(x)", *_write(wanted, scalar)]


def _combine_source(wanted: list[str], scalar: bool) -> list[str]:
    return ["out, a, b", f"r = function({_read('a', wanted, scalar)}, {_read('b', wanted, scalar)})", *_write(wanted, scalar)]


def _lower_source(wanted: list[str], scalar: bool, results: list[int], plain: bool) -> list[str]:
    kinds = [_KINDS[result % _OPTIONAL] for result in results]
    none = ["out[0] = 0", "if r is None: return"] if results[0] >= _OPTIONAL else []
    return ["out, p", f"r = function({_read('p', wanted, scalar)})", *none, "out[0] = 1", *_write(kinds, plain, first=1)]


def _function(numba: Any, function: Any, signature: Any, source: list[str]) -> Any:
    arguments, *body = source
    real, bits = _casts()
    names: dict[str, Any] = {"function": function, "real": real, "bits": bits}
    exec(f"def around({arguments}):\n" + "".join(f"    {line}\n" for line in body), names)
    return numba.cfunc(signature)(names["around"])
