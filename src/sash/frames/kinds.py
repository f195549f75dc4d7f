"""The kinds of frames: what each has to say to a definition, its columns as Arrow, and the way back.

No library is imported here before a frame of its kind comes in.
"""

from __future__ import annotations

import sys
from collections.abc import Collection, Iterable, Mapping
from typing import Any

import pyarrow as pa

from sash.engine.definition import Columns
from sash.errors import DefinitionError
from sash.frames.arrow import check_times, check_values, engine_column, engine_type, text_bytes

__all__ = ["Frame", "frame_of"]


class Frame(Columns):
    """A frame of one kind; the ways of this class are those of Arrow tables."""

    def __init__(self, names: Iterable[str]) -> None:
        super().__init__(tuple(names))
        self._read: dict[str, pa.Array] = {}

    def raw(self, name: str) -> pa.ChunkedArray | pa.Array:
        """A column as the frame's library gives it to Arrow."""
        raise TypeError

    def type_of(self, name: str) -> pa.DataType:
        """The engine's type of a column; kinds that know it without the values say so."""
        column = self._checked(name, lambda: self.raw(name))
        return engine_type(column.type, text_bytes(column))

    def schema(self, names: Iterable[str]) -> pa.Schema:
        """The Arrow types of some columns; a DefinitionError names one that can't be carried."""
        return pa.schema([(name, self.type_of(name)) for name in names])

    def column(self, name: str, type_: pa.DataType | None = None) -> pa.Array:
        """A column as the engine takes it."""
        if name not in self._read:
            self._read[name] = self._checked(name, lambda: engine_column(self.raw(name), type_ or self.type_of(name)))
        return self._read[name]

    def _checked(self, name: str, read: Any) -> Any:
        try:
            return read()
        except (pa.ArrowException, TypeError, ValueError) as error:
            why = str(error).strip().rstrip(".")
            raise DefinitionError(
                f"the column {name!r} of type {self.told(name)} can't be read: {why}. Give it one type that Arrow has, or leave it out."
            ) from error

    def told(self, name: str) -> str:
        """The type of a column as the frame's own library says it."""
        return str(self.raw(name).type)

    def batch(self, schema: pa.Schema, keys: Collection[str], time: str) -> pa.RecordBatch:
        """Some columns as one batch; one is the time, and those that are not keys hold values that can be aggregated."""
        columns = [self.column(field.name, field.type) for field in schema]
        for field, column in zip(schema, columns, strict=True):
            if field.name == time:
                check_times(field.name, column)
            elif field.name not in keys:
                check_values(field.name, column)
        return pa.record_batch(columns, schema=schema)

    def new(self, table: pa.Table, like: Mapping[str, str]) -> Any:
        """A frame of this kind from results; ``like`` names the columns of this frame that some of them have the type of."""
        raise TypeError

    def extended(self, kept: pa.Array | None, results: pa.Table) -> Any:
        """This frame, or (kept: which) some of its rows, with more columns."""
        raise TypeError


class ArrowFrame(Frame):
    """Tables, record batches, readers, and whatever else exports a stream or an array of records."""

    def __init__(self, given: Any) -> None:
        self._given = given
        self._table: pa.Table | None = None
        super().__init__(given.schema.names)

    @property
    def table(self) -> pa.Table:
        """All of it; a reader is read here, after its definition was checked."""
        if self._table is None:
            given = self._given
            reader = isinstance(given, pa.RecordBatchReader)
            self._table = given.read_all() if reader else pa.Table.from_batches([given]) if isinstance(given, pa.RecordBatch) else given
        return self._table

    def raw(self, name: str) -> Any:
        return self.table.column(name)

    def type_of(self, name: str) -> pa.DataType:
        unread = isinstance(self._given, pa.RecordBatchReader)
        return engine_type(self._given.schema.field(name).type, 0 if unread else text_bytes(self._given.column(name)))

    def new(self, table: pa.Table, like: Mapping[str, str]) -> Any:
        types = {name: self._given.schema.field(old).type for name, old in like.items()}
        columns = [_cast_back(table.column(name), types.get(name)) for name in table.column_names]
        return self._as_given(pa.table(columns, names=table.column_names))

    def extended(self, kept: pa.Array | None, results: pa.Table) -> Any:
        table = self.table if kept is None else self.table.filter(kept)
        for name in results.column_names:
            table = table.append_column(results.schema.field(name), results.column(name))
        return self._as_given(table)

    def _as_given(self, table: pa.Table) -> Any:
        if isinstance(self._given, pa.RecordBatchReader):
            return table.to_reader()
        if isinstance(self._given, pa.RecordBatch):
            columns = [column.combine_chunks() for column in table.columns]
            return pa.record_batch([c.chunk(0) if isinstance(c, pa.ChunkedArray) else c for c in columns], schema=table.schema)
        return table


def _cast_back(column: pa.ChunkedArray, type_: pa.DataType | None) -> pa.ChunkedArray:
    if type_ is None or column.type == type_:
        return column
    if pa.types.is_null(type_):
        return pa.chunked_array([pa.nulls(len(column))])
    if pa.types.is_dictionary(type_):
        return column.cast(type_.value_type).dictionary_encode().cast(type_)
    if isinstance(type_, pa.BaseExtensionType):
        return pa.chunked_array([type_.wrap_array(chunk) for chunk in column.cast(type_.storage_type).chunks], type_)
    return column if pa.types.is_run_end_encoded(type_) else column.cast(type_)


class DuckFrame(ArrowFrame):
    """A DuckDB relation: it is run once; results come back to its own connection."""

    def __init__(self, relation: Any) -> None:
        self._relation = relation
        super().__init__(relation.to_arrow_table())

    def cast_to_time(self, name: str) -> str:
        return f'select "{name}"::timestamp'

    def _as_given(self, table: pa.Table) -> Any:
        return _relation(self._relation, table)


def _relation(beside: Any, sash_results: pa.Table) -> Any:
    """A relation of a table, on the connection of another one. DuckDB finds the table by the name of this argument."""
    return beside.query("sash_input", "select * from sash_results")


class PandasFrame(Frame):
    """A pandas DataFrame. NaN in a NumPy column is a missing value, as pandas has it."""

    def __init__(self, df: Any) -> None:
        self._df = df
        self._raw: dict[str, Any] = {}
        super().__init__(df.columns)

    def cast_to_time(self, name: str) -> str:
        unit = ", unit='s'" if self._df[name].dtype.kind in "iu" else ""
        return f"pd.to_datetime(df[{name!r}]{unit})"

    def near(self, name: str) -> str:
        """An index is no column."""
        return f" {name!r} is in the index: use df.reset_index({name!r})." if name in self._df.index.names else ""

    def told(self, name: str) -> str:
        return str(self._df[name].dtype)

    def raw(self, name: str) -> Any:
        if name not in self._raw:
            column = self._df[name]
            sparse = hasattr(column.dtype, "fill_value")  # Arrow has no such form
            self._raw[name] = pa.array(column.sparse.to_dense() if sparse else column, from_pandas=True)
        return self._raw[name]

    def new(self, table: pa.Table, like: Mapping[str, str]) -> Any:
        import pandas as pd

        for i, name in enumerate(table.column_names):
            if name in like and pa.types.is_null(self.raw(like[name]).type):
                table = table.set_column(i, name, pa.nulls(table.num_rows))
        series = self._series(table)
        for name, old in like.items():
            if series[name].dtype != self._df[old].dtype:
                series[name] = series[name].astype(self._df[old].dtype)
        return pd.DataFrame(series)

    def extended(self, kept: pa.Array | None, results: pa.Table) -> Any:
        import pandas as pd

        df = self._df if kept is None else self._df[kept.to_numpy(zero_copy_only=False)]
        series = {name: column.set_axis(df.index) for name, column in self._series(results).items()}
        return pd.concat([df, pd.DataFrame(series, index=df.index)], axis=1)

    def _series(self, table: pa.Table) -> dict[str, Any]:
        """Results as Series: Arrow's types if the frame's are, else NumPy's, and pandas' nullable ones for integers and truth values."""
        import pandas as pd

        arrow = all(isinstance(dtype, pd.ArrowDtype) for dtype in self._df.dtypes)
        series = {}
        for field, column in zip(table.schema, table.columns, strict=True):
            if arrow:
                series[field.name] = pd.Series(pd.arrays.ArrowExtensionArray(column))
            elif field.nullable and (pa.types.is_int64(field.type) or pa.types.is_boolean(field.type)):
                dtype = pd.Int64Dtype() if pa.types.is_int64(field.type) else pd.BooleanDtype()
                series[field.name] = pd.Series(dtype.__from_arrow__(column))
            else:
                series[field.name] = column.to_pandas()
        return series


class PolarsFrame(Frame):
    """A Polars DataFrame."""

    def __init__(self, df: Any) -> None:
        self._df = df
        super().__init__(df.columns)

    def cast_to_time(self, name: str) -> str:
        return f"pl.col({name!r}).cast(pl.Datetime('us'))"

    def told(self, name: str) -> str:
        return str(self._df.schema[name])

    def raw(self, name: str) -> Any:
        return _from_polars(self._df.select(name)).column(0)

    def type_of(self, name: str) -> pa.DataType:
        # Text of Polars has 64-bit offsets, so its types follow from those of no rows.
        column = self._checked(name, lambda: _from_polars(self._df.select(name).head(0)))
        return engine_type(column.column(0).type)

    def new(self, table: pa.Table, like: Mapping[str, str]) -> Any:
        import polars as pl

        df = pl.DataFrame(pl.from_arrow(table))
        casts = [pl.col(name).cast(self._df.schema[old]) for name, old in like.items() if df.schema[name] != self._df.schema[old]]
        return df.with_columns(casts) if casts else df

    def extended(self, kept: pa.Array | None, results: pa.Table) -> Any:
        import polars as pl

        df = self._df if kept is None else self._df.filter(pl.Series(kept.to_numpy(zero_copy_only=False)))
        return df.with_columns(pl.DataFrame(pl.from_arrow(results)).get_columns())


def _from_polars(df: Any) -> pa.Table:
    import polars as pl

    return df.to_arrow(compat_level=pl.CompatLevel.oldest())


def frame_of(df: Any) -> Frame:
    """The kind of a frame; a TypeError that says which there are."""
    if isinstance(df, pa.Table | pa.RecordBatch | pa.RecordBatchReader):
        return ArrowFrame(df)
    if is_of(df, "pandas", "DataFrame"):
        return PandasFrame(df)
    if is_of(df, "polars", "DataFrame"):
        return PolarsFrame(df)
    if is_of(df, "duckdb", "DuckDBPyRelation"):
        return DuckFrame(df)
    if hasattr(df, "__arrow_c_stream__") and not is_of(df, "pandas", "Series") and not is_of(df, "polars", "Series"):
        return ArrowFrame(pa.table(df))
    if hasattr(df, "__arrow_c_array__"):
        return ArrowFrame(pa.Table.from_batches([pa.record_batch(df)]))
    raise TypeError(
        f"{type(df).__module__}.{type(df).__qualname__} is not a frame that is known here. Pass a pandas or Polars DataFrame, a Polars "
        "LazyFrame, a PyArrow table, batch or reader, a DuckDB relation, or anything that exports an Arrow stream of records."
    )


def is_of(value: Any, library: str, name: str) -> bool:
    """Whether a value is of a class of a library, which is not imported for it."""
    module = sys.modules.get(library)
    return module is not None and isinstance(value, getattr(module, name, ()))
