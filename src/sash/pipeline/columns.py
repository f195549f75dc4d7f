"""What a pipeline makes of columns: values taken apart, rows chosen, columns selected, messages for Kafka."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Final

from pyspark.errors import AnalysisException
from pyspark.sql import functions as F
from pyspark.sql import types as T

from sash.errors import DefinitionError
from sash.pipeline.ends import Sink, Source, Value
from sash.pipeline.failures import first_line
from sash.spark.guard import quoted

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame

__all__ = ["KeyErrors", "chosen", "dead_letters", "for_sink", "opened"]

_PARSED: Final = "__sash_parsed"
_CORRUPT: Final = "__sash_corrupt"
_METRIC: Final = "sash.source"


class KeyErrors(DefinitionError):
    """What is wrong with expressions, each with the key of the file that it stands in."""

    def __init__(self, found: list[tuple[str, str]]) -> None:
        self.found = found
        super().__init__("; ".join(f"{key}: {said}" for key, said in found))


def opened(df: DataFrame, source: Source) -> DataFrame:
    """Take values apart, then choose rows and columns; what can't be parsed is dropped and, in a stream, counted."""
    if source.value is not None:
        whole, bad = _parsed(df, source.value)
        if df.isStreaming:
            whole = whole.observe(_METRIC, F.count_if(bad).alias("unparsed"))
        fields = [name for name in whole.schema[_PARSED].dataType.names if name != _CORRUPT]
        # A field of the value goes before a column of the source that has its name, such as Kafka's timestamp.
        others = [quoted(name) for name in df.columns if name != "value" and name not in fields]
        inside = [F.col(f"{_PARSED}.{quoted(name)}").alias(name) for name in fields]
        df = whole.filter(~bad).select(*others, *inside)
    return chosen(df, source.where, source.select)


def dead_letters(df: DataFrame, value: Value, sink: Sink) -> DataFrame:
    """The rows whose value can't be parsed, as they came; for Kafka, what a message is made of."""
    whole, bad = _parsed(df, value)
    kept = [name for name in df.columns if sink.format != "kafka" or name in ("key", "value", "headers")]
    return chosen(whole.filter(bad).select(*map(quoted, kept)), sink.where, sink.select)


def _parsed(df: DataFrame, value: Value) -> tuple[DataFrame, Column]:
    """A DataFrame with the parsed value beside the others, and whether a row's could not be parsed."""
    if "value" not in df.columns:
        said = f"value={value.format!r} takes the column value apart, and there is none. The columns are {', '.join(df.columns)}. "
        raise KeyErrors([("value", said + "Read files as text, or drop value.")])
    kind = df.schema["value"].dataType
    if not isinstance(kind, T.StringType | T.BinaryType):
        raise DefinitionError(
            f"value={value.format!r} needs bytes or text in the column value, which is {kind.simpleString()}. Drop value."
        )
    try:
        whole = df.select("*", _parser(value).alias(_PARSED))
    except AnalysisException as error:
        raise KeyErrors([("value_schema", f"value_schema is not understood: {first_line(error)}")]) from error
    bad = F.col(_PARSED).isNull()
    if value.format != "avro":
        bad = bad | F.col(f"{_PARSED}.{_CORRUPT}").isNotNull()
    return whole, bad


def _parser(value: Value) -> Column:
    options = {"mode": "PERMISSIVE", **value.options}
    if value.format == "avro":
        from pyspark.sql.avro.functions import from_avro

        return from_avro(F.col("value").cast("binary"), value.schema, options)
    read = F.from_json if value.format == "json" else F.from_csv
    return read(F.col("value").cast("string"), f"{value.schema}, {_CORRUPT} string", {**options, "columnNameOfCorruptRecord": _CORRUPT})


def chosen(df: DataFrame, where: str | None, select: Sequence[str]) -> DataFrame:
    """Choose rows, then columns, by SQL expressions; KeyErrors names all that Spark can't make sense of."""
    wrong = []
    for key, text in [*([] if where is None else [("where", where)]), *(("select", one) for one in select)]:
        try:
            df.filter(text) if key == "where" else df.selectExpr(text)
        except AnalysisException as error:
            wrong.append((key, f"{key}: {text!r} can't be computed: {first_line(error)}"))
    if wrong:
        raise KeyErrors(wrong)
    if where is not None:
        df = df.filter(where)
    return df.selectExpr(*select) if select else df


def for_sink(df: DataFrame, sink: Sink, keys: Sequence[str]) -> DataFrame:
    """Give results the columns that a sink takes: for Kafka a message of all of them as JSON, by their key."""
    df = chosen(df, sink.where, sink.select)
    if len(set(df.columns)) < len(df.columns):
        twice = next(name for name in df.columns if df.columns.count(name) > 1)
        raise KeyErrors([("select", f"select gives two columns the name {twice!r}. Name one of them anew: ... as other.")])
    for name in sink.merge:
        if name not in df.columns:
            raise KeyErrors([("merge", f"merge names {name!r}, which is not a column here. The columns are {', '.join(df.columns)}.")])
    if sink.format != "kafka":
        return df
    if sink.select and "value" in df.columns:
        for name in ("key", "value"):
            if name in df.columns and not isinstance(df.schema[name].dataType, T.StringType | T.BinaryType):
                kind = df.schema[name].dataType.simpleString()
                said = f"select gives Kafka a {name} of type {kind}. It takes text or bytes: cast it, or use to_json()."
                raise KeyErrors([("select", said)])
        return df
    message = [_json(df.columns).alias("value")]
    present = [name for name in keys if name in df.columns]
    if present:
        plain = len(present) == 1 and isinstance(df.schema[present[0]].dataType, T.StringType | T.BinaryType)
        message.insert(0, (F.col(quoted(present[0])) if plain else _json(present)).cast("string").alias("key"))
    return df.select(*message)


def _json(names: Sequence[str]) -> Column:
    # A result without a value is told as null: a reader must not take a field that is missing for one it need not look at.
    return F.to_json(F.struct(*map(quoted, names)), {"ignoreNullFields": "false"})
