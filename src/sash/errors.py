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
    """The base of the errors that are Sash's own."""


class OutOfOrderError(SashError, ValueError):
    """An item is older than what an in-order window already holds."""


class BrokenWindow(SashError, RuntimeError):
    """A callable raised in the middle of a step that could not be undone; clear() makes the window usable again."""


class Undescribed(SashError, ValueError):
    """A definition refers to something that can't be written down exactly, so that it can't be stored, and equals no other."""


class DefinitionError(SashError, ValueError):
    """A pipeline is defined in a way that can't run."""


class CheckpointMismatch(SashError, ValueError):
    """A streaming query was restarted on a checkpoint that holds the state of another definition."""


class JavaNotFound(SashError, RuntimeError):
    """Spark needs a JVM and there is none."""


def missing_extra(package: str, extra: str) -> ImportError:
    """Say which extra brings a package that is not installed.

    >>> raise missing_extra("pyspark", "spark")
    Traceback (most recent call last):
    ...
    ImportError: pyspark is not installed. It comes with the extra: pip install "sash[spark]"
    """
    return ImportError(f'{package} is not installed. It comes with the extra: pip install "sash[{extra}]"')
