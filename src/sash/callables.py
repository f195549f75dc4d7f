"""A callable as plain data: what a fingerprint of a user's definition is made of.

A function is its code, constants, defaults and closure, and the globals and attributes that the code uses. Data is itself;
an array is a hash of its bytes with its dtype and shape; any other object is its class and what a pickle of it would hold,
where functions stand as code again. What has no such form (an open file, a generator, a module that is handed around) is
``Undescribed``: a definition made of it can't be stored, and equals no other.

Functions and classes of Python itself and of the packages in ``PLATFORM`` stand by their names.
"""

from __future__ import annotations

import datetime as dt
import decimal
import dis
import enum
import functools
import hashlib
import importlib
import inspect
import sys
import types
from collections.abc import Iterator
from typing import Any, Final

import numpy as np

from sash import codec
from sash.errors import Undescribed

__all__ = ["value_facts"]

PLATFORM: Final = frozenset({"numpy", "numba", "scipy", "pandas", "pyarrow", "polars", "sash"}) | sys.stdlib_module_names
_ATOMS: Final = (type(None), bool, int, float, str, bytes, dt.date, dt.timedelta, decimal.Decimal)
_SHOWN: Final = (complex, type(...), type(NotImplemented))  # their repr is exact
_BY_NAME: Final = (
    types.BuiltinFunctionType,
    types.MethodDescriptorType,
    types.WrapperDescriptorType,
    types.MethodWrapperType,
    types.GetSetDescriptorType,
    types.MemberDescriptorType,
    types.ClassMethodDescriptorType,
)
_OPAQUE: Final = frozenset({"eval", "exec", "globals", "locals", "vars", "__import__"})  # they reach what no description names
_CLASS_NOISE: Final = frozenset({"__dict__", "__weakref__", "__doc__", "__module__", "__annotations__", "__dataclass_fields__"})
_FLAGS: Final = inspect.CO_VARARGS | inspect.CO_VARKEYWORDS

Seen = frozenset[int]


def value_facts(value: Any) -> Any:
    """Describe a callable or another value as plain data; ``Undescribed`` where that can't be done exactly.

    >>> def times(k): return lambda x: k * x
    >>> value_facts(times(2)) == value_facts(times(2)), value_facts(times(2)) == value_facts(times(3))
    (True, False)
    """
    try:
        return _fact(value, frozenset())
    except RecursionError:
        raise Undescribed(f"{_shown(value)} refers to too many things within things to be written down.") from None


def _fact(value: Any, seen: Seen) -> Any:
    kind = type(value)
    if kind in _ATOMS or (kind is dt.datetime and (value.tzinfo is None or type(value.tzinfo) is dt.timezone)):
        return value
    if kind in _SHOWN:
        return ("type", kind.__module__, kind.__qualname__, repr(value))
    if kind in (tuple, list, dict, set, frozenset):
        return _container_facts(value, seen)
    if isinstance(value, types.ModuleType):
        if _of_platform(value.__name__):
            return ("module", value.__name__)
        raise Undescribed(f"the module {value.__name__} is used as a value. Use its attributes by name: {value.__name__}.something.")
    if isinstance(value, _BY_NAME):
        owner = getattr(value, "__objclass__", None) or getattr(value, "__self__", None)
        if owner is not None and not isinstance(owner, types.ModuleType | type):
            return ("method", value.__name__, _fact(owner, seen))  # [].append and the like
        return ("name", _module_of(value), getattr(value, "__qualname__", ""))
    if _is_array(value):
        return _array_facts(value, seen)
    if id(value) in seen:
        return ("again", getattr(value, "__qualname__", type(value).__qualname__))
    return _object_facts(value, seen | {id(value)})


def _object_facts(value: Any, seen: Seen) -> Any:
    if isinstance(value, types.FunctionType):
        return ("name", _module_of(value), value.__qualname__) if _importable(value) else _function_facts(value, seen)
    if isinstance(value, types.MethodType):
        return ("bound", _fact(value.__func__, seen), _fact(value.__self__, seen))
    if isinstance(value, functools.partial):
        return ("partial", _fact(value.func, seen), _fact(value.args, seen), _fact(value.keywords, seen))
    if isinstance(value, staticmethod | classmethod):
        return (type(value).__name__, _fact(value.__func__, seen))
    if isinstance(value, property):
        return ("property", *(_fact(f, seen) for f in (value.fget, value.fset, value.fdel)))
    if isinstance(value, functools.cached_property):
        return ("property", _fact(value.func, seen))
    if isinstance(value, type):
        return _class_facts(value, seen)
    if isinstance(inner := getattr(value, "py_func", None), types.FunctionType) and _of_platform(type(value).__module__):
        options = getattr(value, "targetoptions", None) or {}  # a function under numba's njit
        return ("njit", _fact(inner, seen), sorted((str(k), repr(v)) for k, v in options.items()))
    if type(value).__name__ == "_lru_cache_wrapper":
        return ("wrapped", _fact(value.__wrapped__, seen))
    if isinstance(value, np.ufunc) and getattr(np, value.__name__, None) is value:
        return ("name", getattr(value, "__module__", ""), getattr(value, "__qualname__", ""))
    return _instance_facts(value, seen)


# --- functions


def _function_facts(function: types.FunctionType, seen: Seen) -> Any:
    code, roots = function.__code__, _roots(function.__code__)
    cells = tuple(
        _root_facts(name, cell.cell_contents, roots, seen) if _filled(cell) else ("empty",)
        for name, cell in zip(code.co_freevars, function.__closure__ or (), strict=True)
    )
    used: dict[str, Any] = {}
    for name in sorted(_names(code)):
        if name in roots and name not in function.__globals__ and name in _OPAQUE:
            raise Undescribed(f"{function.__qualname__} calls {name}(), which may use anything. Name what it uses instead.")
        if name in function.__globals__:
            try:
                used[name] = _root_facts(name, function.__globals__[name], roots, seen)
            except Undescribed:
                if name in roots:  # else it is the name of an attribute, and only called the same
                    raise
    for name in sorted(_imports(code)):
        if not _of_platform(name):
            used[f"import {name}"] = _imported_facts(name, _names(code), seen)
    kept = function.__defaults__, function.__kwdefaults__
    return ("code", _code_facts(code, seen), *(_fact(given, seen) for given in kept), cells, used)


def _code_facts(code: types.CodeType, seen: Seen) -> Any:
    consts = tuple(_code_facts(const, seen) if isinstance(const, types.CodeType) else _fact(const, seen) for const in code.co_consts)
    facts = (code.co_code, consts, code.co_names, code.co_varnames, code.co_argcount)
    more = (code.co_posonlyargcount, code.co_kwonlyargcount, code.co_flags & _FLAGS, code.co_exceptiontable)
    return (*facts, more) if any(more) else facts


def _all_code(code: types.CodeType) -> Iterator[types.CodeType]:
    yield code
    for const in code.co_consts:
        if isinstance(const, types.CodeType):
            yield from _all_code(const)


def _names(code: types.CodeType) -> set[str]:
    return {name for inner in _all_code(code) for name in inner.co_names}


def _imports(code: types.CodeType) -> set[str]:
    return {str(step.argval) for inner in _all_code(code) for step in dis.get_instructions(inner) if step.opname == "IMPORT_NAME"}


def _roots(code: types.CodeType) -> dict[str, set[tuple[str, ...]]]:
    """Give the globals and closed-over names that code loads, each with the chains of attributes it takes of them.

    An empty chain says that the value itself is used.
    """
    roots: dict[str, set[tuple[str, ...]]] = {}
    for inner in _all_code(code):
        root: str | None = None
        chain: tuple[str, ...] = ()
        for step in (*dis.get_instructions(inner), None):
            if step is not None and root is not None and step.opname in ("LOAD_ATTR", "LOAD_METHOD"):
                chain = (*chain, str(step.argval))
                continue
            if step is not None and step.opname in ("CACHE", "EXTENDED_ARG"):
                continue
            if root is not None:
                roots.setdefault(root, set()).add(chain)
            loads = step is not None and step.opname in (
                "LOAD_GLOBAL",
                "LOAD_DEREF",
                "LOAD_NAME",
                "LOAD_CLASSDEREF",
                "LOAD_FROM_DICT_OR_DEREF",
            )
            root, chain = (str(step.argval), ()) if loads and step is not None else (None, ())
    return roots


def _filled(cell: types.CellType) -> bool:
    try:
        cell.cell_contents  # noqa: B018
    except ValueError:
        return False
    return True


def _root_facts(name: str, value: Any, roots: dict[str, set[tuple[str, ...]]], seen: Seen) -> Any:
    """Describe what code uses of a value: itself, or only some of its attributes."""
    chains = roots.get(name, {()})
    if isinstance(value, types.ModuleType):
        if _of_platform(value.__name__):
            return ("module", value.__name__)
        return ("module", value.__name__, {".".join(chain): _chain_facts(value, chain, seen) for chain in sorted(chains)})
    if isinstance(value, types.FunctionType) and any(chains):
        return ("with", _fact(value, seen), {".".join(chain): _chain_facts(value, chain, seen) for chain in sorted(chains) if chain})
    if () not in chains and not _plain(value) and all(_is_data(value, chain[0]) for chain in chains):
        return ("attributes", {".".join(chain): _chain_facts(value, chain, seen) for chain in sorted(chains)})
    return _fact(value, seen)


def _chain_facts(value: Any, chain: tuple[str, ...], seen: Seen) -> Any:
    for i, name in enumerate(chain):
        if not isinstance(value, types.ModuleType | types.FunctionType) and not _is_data(value, name):
            return ("of", chain[i:], _fact(value, seen))
        if not hasattr(value, name):
            return ("missing", chain[i:])
        value = getattr(value, name)
    return _fact(value, seen)


def _is_data(value: Any, name: str) -> bool:
    """Tell whether an attribute is a value that an object or its class holds, not something made when asked for."""
    try:
        own = inspect.getattr_static(value, name)
    except AttributeError:
        return False
    if isinstance(own, types.MemberDescriptorType):
        return True
    return not hasattr(type(own), "__get__") and not isinstance(getattr(value, name), types.ModuleType)


def _imported_facts(name: str, attributes: set[str], seen: Seen) -> Any:
    try:
        module = importlib.import_module(name)
    except ImportError:
        raise Undescribed(f"the module {name} is imported by a callable and is not here. Import it where the callable is made.") from None
    return {a: _fact(getattr(module, a), seen) for a in sorted(attributes) if hasattr(module, a) and a != name}


# --- values


def _plain(value: Any) -> bool:
    return type(value) in _ATOMS or type(value) in (dt.datetime, tuple, list, dict, set, frozenset) or _is_array(value)


def _container_facts(value: Any, seen: Seen) -> Any:
    if id(value) in seen:
        return ("again", type(value).__qualname__)
    seen |= {id(value)}
    if isinstance(value, dict):
        pairs = [(_fact(k, seen), _fact(v, seen)) for k, v in value.items()]
        unchanged = all(a is k and b is v for (a, b), (k, v) in zip(pairs, value.items(), strict=True))
        return value if unchanged else ("dict", pairs)
    facts = [_fact(item, seen) for item in value]
    if all(fact is item for fact, item in zip(facts, value, strict=True)):
        return value
    if isinstance(value, set | frozenset):
        return (type(value).__name__, sorted(codec.encode(fact) for fact in facts))
    return (type(value).__name__, *facts)


def _is_array(value: Any) -> bool:
    return isinstance(value, np.ndarray | np.generic)


def _array_facts(array: Any, seen: Seen) -> Any:
    """Describe a NumPy array or scalar: dtype, shape, and a hash of its bytes; of objects, each of them."""
    if array.dtype.hasobject:
        contents: Any = [_fact(item, seen | {id(array)}) for item in array.ravel().tolist()]
    else:
        contents = hashlib.blake2b(array.tobytes(), digest_size=16).digest()
    mask = getattr(array, "mask", None)  # of a masked array
    more = () if mask is None else (hashlib.blake2b(mask.tobytes(), digest_size=16).digest(),)
    return (
        "array",
        type(array).__qualname__,
        repr(array.dtype.descr if array.dtype.names else array.dtype.str),
        array.shape,
        contents,
        *more,
    )


def _class_facts(cls: type, seen: Seen) -> Any:
    if _importable(cls):
        return ("name", _module_of(cls), cls.__qualname__)
    if issubclass(cls, enum.Enum):
        members: dict[str, Any] = {name: _fact(member.value, seen) for name, member in cls.__members__.items()}
        kept = {k: v for k, v in vars(cls).items() if isinstance(v, types.FunctionType | property | staticmethod | classmethod)}
    else:
        members = {}
        kept = {k: v for k, v in vars(cls).items() if k not in _CLASS_NOISE and (callable(v) or not k.startswith(("__", "_abc_")))}
    for name, member in sorted(kept.items()):
        members[name] = _member_facts(member, seen)
    bases = tuple(_fact(base, seen) for base in cls.__bases__)
    return ("class", cls.__module__, cls.__qualname__, bases, _fact(type(cls), seen), members)


def _member_facts(member: Any, seen: Seen) -> Any:
    if type(member).__name__ == "_tuplegetter":  # a field of a named tuple
        return ("field", member.__reduce__()[1][0])
    return _fact(member, seen)


def _instance_facts(value: Any, seen: Seen) -> Any:
    """Describe an object by its class, and by what a pickle of it would hold."""
    try:
        reduced = value.__reduce_ex__(4)
    except Exception:
        raise Undescribed(
            f"{_shown(value)} can't be written down exactly: it has no state that could be read. "
            "Use numbers, text, arrays, functions, and objects of these."
        ) from None
    if isinstance(reduced, str):
        return ("instance", _fact(type(value), seen), reduced)
    make, arguments, *rest = reduced
    state = [list(part) if isinstance(part, Iterator) else part for part in rest]
    return ("instance", _fact(type(value), seen), _fact(make, seen), _fact(arguments, seen), [_fact(part, seen) for part in state])


# --- names


def _of_platform(module: str | None) -> bool:
    return module is not None and module.partition(".")[0] in PLATFORM


def _module_of(value: Any) -> str:
    return str(getattr(value, "__module__", None) or "")


def _importable(value: Any) -> bool:
    """Tell whether a name finds a function or class in Python itself or in one of the packages that stand by their names."""
    if not _of_platform(_module_of(value)):
        return False
    found: Any = sys.modules.get(value.__module__)
    for name in value.__qualname__.split("."):
        found = getattr(found, name, None)
    return found is value


def _shown(value: Any) -> str:
    try:
        text = repr(value)
    except Exception:
        text = f"an object of {type(value).__qualname__}"
    return text if len(text) <= 80 else text[:77] + "..."
