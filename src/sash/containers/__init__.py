"""What callers hold their data in: one reader of NumPy, pandas, Polars, Arrow, mappings of columns, lists of records and plain iterables.

A column becomes a NumPy array and a mask of nulls; whatever is no number, truth value or moment stays an array of the caller's own
objects. A table is asked for its columns by name. None of these libraries but NumPy is imported before the caller has.
"""

from sash.containers.columns import NULLS, Column, column, plain, sized
from sash.containers.given import given_back
from sash.containers.moments import microseconds
from sash.containers.tables import Table, objects, records, table

__all__ = ["NULLS", "Column", "Table", "column", "given_back", "microseconds", "objects", "plain", "records", "sized", "table"]
