"""What is aggregated: factories of immutable aggregations, a module per family.

The names shadow built-ins on purpose: ``from sash import agg`` and write ``agg.sum()``.
"""

from sash.agg.base import Aggregation
from sash.agg.custom import define, struct
from sash.agg.extremes import argmax, argmin, max, maxcount, min, mincount, minmax, relvar
from sash.agg.moments import kurtosis, skew, std, var
from sash.agg.ordered import collect, concat, first, last
from sash.agg.sums import all, any, bit_and, bit_or, count, geomean, mean, product, sum

__all__ = [
    "Aggregation",
    "all",
    "any",
    "argmax",
    "argmin",
    "bit_and",
    "bit_or",
    "collect",
    "concat",
    "count",
    "define",
    "first",
    "geomean",
    "kurtosis",
    "last",
    "max",
    "maxcount",
    "mean",
    "min",
    "mincount",
    "minmax",
    "product",
    "relvar",
    "skew",
    "std",
    "struct",
    "sum",
    "var",
]
