"""What is aggregated: factories of immutable aggregations, a module per family.

The names shadow built-ins on purpose: ``from sash import agg`` and write ``agg.sum()``.
"""

from sash.agg.base import Aggregation
from sash.agg.custom import define, struct
from sash.agg.ends import first_k, ith_youngest, last_k
from sash.agg.extremes import argmax, argmin, max, maxcount, min, mincount, minmax, relvar
from sash.agg.largest import bottom_k, m4, top_k
from sash.agg.membership import bloom
from sash.agg.models import histogram, linreg, naive_bayes
from sash.agg.moments import kurtosis, skew, std, var
from sash.agg.ordered import collect, concat, first, last
from sash.agg.ranks import distinct, ith_smallest, median, quantile
from sash.agg.sketches import approx_distinct, approx_quantile, count_min, frequent_items
from sash.agg.sums import all, any, bit_and, bit_or, count, geomean, mean, product, sum

__all__ = [
    "Aggregation",
    "all",
    "any",
    "approx_distinct",
    "approx_quantile",
    "argmax",
    "argmin",
    "bit_and",
    "bit_or",
    "bloom",
    "bottom_k",
    "collect",
    "concat",
    "count",
    "count_min",
    "define",
    "distinct",
    "first",
    "first_k",
    "frequent_items",
    "geomean",
    "histogram",
    "ith_smallest",
    "ith_youngest",
    "kurtosis",
    "last",
    "last_k",
    "linreg",
    "m4",
    "max",
    "maxcount",
    "mean",
    "median",
    "min",
    "mincount",
    "minmax",
    "naive_bayes",
    "product",
    "quantile",
    "relvar",
    "skew",
    "std",
    "struct",
    "sum",
    "top_k",
    "var",
]
