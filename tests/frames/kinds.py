"""The same rows as frames of every kind, and results as plain rows again."""

from typing import Any

import duckdb
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.compute as pc

NULLABLE = {
    pa.int8(): pd.Int8Dtype(),
    pa.int16(): pd.Int16Dtype(),
    pa.int32(): pd.Int32Dtype(),
    pa.int64(): pd.Int64Dtype(),
    pa.bool_(): pd.BooleanDtype(),
    pa.string(): pd.StringDtype(),
}


class Exported:
    """Something that exports an Arrow stream and nothing else."""

    def __init__(self, table: pa.Table) -> None:
        self._table = table

    def __arrow_c_stream__(self, schema: Any = None) -> Any:
        return self._table.__arrow_c_stream__(schema)


def pandas_arrow(table: pa.Table) -> pd.DataFrame:
    return table.to_pandas(types_mapper=pd.ArrowDtype)


def pandas_plain(table: pa.Table) -> pd.DataFrame:
    """Integers and truth values by pandas' nullable types, the others as NumPy has them; an index that is not 0, 1, 2."""
    df = table.to_pandas(types_mapper=NULLABLE.get)
    return df.set_axis([f"row {i * 7 % 11}" for i in range(len(df))])


CONNECTION = duckdb.connect()  # in old versions a relation does not keep its own open
KINDS = {
    "pandas": pandas_plain,
    "pandas of Arrow": pandas_arrow,
    "polars": pl.from_arrow,
    "polars lazy": lambda table: pl.from_arrow(table).lazy(),
    "table": lambda table: table,
    "chunks": lambda table: pa.concat_tables([table.slice(i, 7) for i in range(0, table.num_rows, 7)]) if table.num_rows else table,
    "batch": lambda table: table.combine_chunks().to_batches()[0],
    "reader": lambda table: table.to_reader(max_chunksize=5),
    "duckdb": lambda table: CONNECTION.from_arrow(table),
    "exported": Exported,
}
TYPES = {
    "pandas": pd.DataFrame,
    "pandas of Arrow": pd.DataFrame,
    "polars": pl.DataFrame,
    "polars lazy": pl.LazyFrame,
    "batch": pa.RecordBatch,
    "reader": pa.RecordBatchReader,
    "duckdb": duckdb.DuckDBPyRelation,
}


def to_arrow(kind: str, out: Any) -> pa.Table:
    """A result as an Arrow table; it must be of the kind that was given."""
    assert isinstance(out, TYPES.get(kind, pa.Table))
    if kind == "polars lazy":
        out = out.collect()
    if isinstance(out, pd.DataFrame):
        return pa.Table.from_pandas(out, preserve_index=False)
    if isinstance(out, pa.RecordBatch):
        return pa.Table.from_batches([out])
    return out.to_arrow_table() if isinstance(out, duckdb.DuckDBPyRelation) else pa.table(out)


def seen_by(kind: str, batch: pa.RecordBatch) -> pa.RecordBatch:
    """The rows as this kind holds them: in NumPy's columns of pandas NaN is a missing value."""
    if kind != "pandas":
        return batch
    columns = [
        pc.if_else(pc.is_nan(column), pa.scalar(None, column.type), column) if pa.types.is_floating(column.type) else column
        for column in batch.columns
    ]
    return pa.record_batch(columns, schema=batch.schema)
