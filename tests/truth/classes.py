"""The window classes that the nets run over, as the core's table of algorithms has them."""

from sash.swag.algorithms import ALGORITHMS, needs_of

_WITHOUT_NEEDS = [entry for entry in ALGORITHMS.values() if needs_of(entry) in ("monoid", "nothing") and not entry.needs_delay]

IN_ORDER = tuple(entry.name for entry in _WITHOUT_NEEDS if entry.in_order)
TREES = tuple(entry.name for entry in _WITHOUT_NEEDS if not entry.in_order)
