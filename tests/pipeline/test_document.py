"""A pipeline file: what it means, and that every mistake in it is told at once, with its line and its fix."""

import tomllib

import pytest

from sash import agg
from sash.errors import DefinitionError
from sash.pipeline import document
from sash.pipeline.ends import Value
from sash.pipeline.expressions import aggregation
from sash.pipeline.lines import line_of, lines

GOOD = """\
name = "taxis"            # 1
time = "at"
key = ["zone"]
watermark = "10 minutes"
checkpoint = "checkpoint" # 5

[source]
format = "csv"
path = "in"
schema = "at timestamp, zone string, fare long"   # 10
options = { header = true }

[[windows]]
range = "1 hour"
slide = "1 minute"        # 15
aggs = { n = "count", fare = "mean(fare)" }
sink = { format = "parquet", path = "out" }

[[rolling]]
name = "features"         # 20
lookbacks = ["1h", "100rows", "all"]
aggs = { s = "sum(fare)" }
key = []
sink = { format = "console", options = { truncate = false } }

[tiles]                   # 26
grain = "1m"
retention = "90d"
path = "tiles"
aggs = { p90 = "quantile(fare, 0.9)" }
"""


@pytest.fixture
def written(tmp_path):
    (tmp_path / "in").mkdir()

    def write(text):
        file = tmp_path / "pipeline.toml"
        file.write_text(text)
        return file

    return write


def wrong(file):
    with pytest.raises(document.PipelineErrors) as told:
        document.read(file)
    return told.value.found


def test_a_pipeline_file_is_read(written, tmp_path):
    pipeline = document.read(written(GOOD))
    hourly, features, tiles = pipeline.sections
    assert (pipeline.name, pipeline.checkpoint, pipeline.every) == ("taxis", str(tmp_path / "checkpoint"), None)
    assert pipeline.source == document.Source("csv", str(tmp_path / "in"), "at timestamp, zone string, fare long", {"header": "true"})
    assert (hourly.kind, hourly.name) == ("windows", "windows")
    assert hourly.asked == {
        "time": "at",
        "key": ["zone"],
        "watermark": "10 minutes",
        "range": "1 hour",
        "slide": "1 minute",
        "session": None,
        "offset": None,
        "aggs": {"n": agg.count(), "fare": agg.mean("fare")},
    }
    assert hourly.sink == document.Sink("parquet", str(tmp_path / "out"), {})
    assert features.asked["lookbacks"] == ["1h", "100rows", None]
    assert features.asked["key"] is None
    assert features.sink == document.Sink("console", None, {"truncate": "false"})
    assert (tiles.store, tiles.retention) == (str(tmp_path / "tiles"), "90d")
    assert tiles.asked["aggs"] == {"p90": agg.quantile("fare", 0.9)}


@pytest.mark.parametrize(
    ("change", "line", "says"),
    [
        (('time = "at"\n', ""), 1, "there is no time"),
        (("checkpoint", "chekpoint"), 5, "'chekpoint' is not a key of a pipeline. Did you mean checkpoint?"),
        (('"10 minutes"', "10"), 4, 'watermark = 10 has no unit. Write it as text with one: watermark = "10s"'),
        (('"10 minutes"', '"soon"'), 4, "'soon' is not a duration"),
        (('watermark = "10 minutes"\n', ""), 12, "there is no watermark, so no result would ever be final"),
        (('path = "in"', 'path = "nowhere"'), 9, "nowhere does not exist"),
        (('schema = "at timestamp, zone string, fare long"', ""), 8, "a stream of csv files needs a schema"),
        (('format = "csv"', ""), 7, "there is no format"),
        (('format = "csv"', 'table = "t"'), 9, "table and path do not go together"),
        (('range = "1 hour"', 'range = "1 month"'), 14, "months and years have no fixed length"),
        (('range = "1 hour"', 'range = "10s"'), 15, "slide = '1 minute' is longer than range = '10s'"),
        (('range = "1 hour"', 'session = "1 hour"'), 15, "session and slide do not go together"),
        (('range = "1 hour"', ""), 13, "these windows have no range"),
        (("mean(fare)", "avg(fare)"), 16, "fare: 'avg' is not an aggregation"),
        (("mean(fare)", "mean(fare"), 16, "fare: 'mean(fare' is not an aggregation. Write a name and a column"),
        (("mean(fare)", "top_k(fare)"), 16, "top_k needs k"),
        (("mean(fare)", "mean(fare + 1)"), 16, "fare + 1 is neither a column nor a number"),
        (('sink = { format = "parquet", path = "out" }', ""), 13, "[[windows]] has no sink"),
        (('{ format = "parquet", path = "out" }', '{ format = "parquet" }'), 17, "a sink of parquet files has no path"),
        (('{ format = "parquet", path = "out" }', '{ path = "out" }'), 17, "there is no format"),
        (("[[windows]]", "[windows]"), 13, "write [[windows]] with two brackets"),
        (('name = "features"', 'name = "windows"'), 20, "the name 'windows' is taken by line 13"),
        (('name = "features"', 'name = "a/b"'), 20, "names a folder"),
        (('lookbacks = ["1h", "100rows", "all"]', 'lookbacks = "1h"'), 21, "lookbacks must be a list"),
        (('"100rows"', '"5 parsecs"'), 21, "'5 parsecs' is not a duration"),
        (("key = []", "key = [1]"), 23, "Write the name of a column"),
        (('grain = "1m"\n', ""), 26, "there is no grain"),
        (('path = "tiles"', 'path = ""'), 29, "path is ''. Write it as text"),
        (('retention = "90d"', 'retention = "1 year"'), 28, "months and years"),
        (('aggs = { p90 = "quantile(fare, 0.9)" }', "aggs = {}"), 30, "there is nothing to aggregate"),
        (('slide = "1 minute"', 'emit = "sometimes"'), 15, "emit = 'sometimes' is not known. Use one of final, update"),
        (('name = "taxis"', 'trigger = "now"'), 1, "'now' is not a duration"),
        (('name = "taxis"', "trigger = 5"), 1, 'trigger is 5. Use "available now", or how often'),
        (('format = "parquet", path = "out"', 'format = "parquet", path = "out", mode = "complete"'), 17, "mode = 'complete' does not fit"),
        (('format = "parquet", path = "out"', 'format = "delta"'), 17, "neither path nor table"),
        (('format = "parquet", path = "out"', 'format = "csv", path = "o", merge = ["zone"]'), 17, "merge updates rows of a table"),
        (('name = "taxis"', 'packages = ["kafka"]'), 1, "'kafka' is not a package. Write group:artifact:version"),
        (('name = "taxis"', "retries = -1"), 1, "retries = -1 is not how often"),
        (('slide = "1 minute"', 'late = "accept"'), 15, "late = 'accept' is not known. Use one of drop, flag"),
        (('name = "features"', 'name = "dead_letters"'), 20, "is that of the query that writes them"),
        (("[[windows]]", '[history]\nformat = "parquet"\npath = "in"\n[[windows]]'), 13, "there is no until"),
        (("[[windows]]", '[history]\nformat = "parquet"\npath = "in"\nuntil = "soon"\n[[windows]]'), 16, "until: "),
        (("options = { header = true }", 'dead_letters = { format = "console" }'), 11, "nothing is. Add value"),
        (("[source]", "[surce]"), 7, "'surce' is not a key of a pipeline. Did you mean source?"),
    ],
)
def test_a_mistake_is_told_with_its_line_and_its_fix(written, change, line, says):
    assert change[0] in GOOD
    found = wrong(written(GOOD.replace(*change)))
    assert any(at == line and says in told for at, told in found), found


KAFKA = """\
format = "kafka"
options = { kafka.bootstrap.servers = "h:1", subscribe = "t" }
value = "json"
value_schema = "at timestamp, zone string, fare long"
select = ["at", "zone", "fare"]
dead_letters = { format = "kafka", options = { kafka.bootstrap.servers = "h:1", topic = "dead" } }
"""


def test_a_source_of_values_is_read(written, tmp_path):
    before, rest = GOOD[: GOOD.index('format = "csv"')], GOOD[GOOD.index("\n[[windows]]") :]
    source = document.read(written(before + KAFKA + rest)).source
    assert source.value == Value("json", "at timestamp, zone string, fare long", {})
    assert source.options == {"kafka.bootstrap.servers": "h:1", "subscribe": "t"}
    assert source.dead_letters == document.Sink("kafka", None, {"kafka.bootstrap.servers": "h:1", "topic": "dead"})
    for change, line, says in [
        ((', subscribe = "t"', ""), 9, "the topic to read from is not given"),
        (('kafka.bootstrap.servers = "h:1", subscribe', "subscribe"), 9, "Kafka's servers are not given"),
        ((', topic = "dead"', ""), 13, "the topic to write to is not given"),
        (('value_schema = "at timestamp, zone string, fare long"', ""), 10, "what is in the json is not said"),
        (('"json"', '"xml"'), 10, "value = 'xml' is not known. Use one of json, avro, csv"),
        (('"json"', '"avro"'), 11, "Avro is read by the schema that it was written with, as JSON"),
        (('value = "json"\n', ""), 10, "its format is missing"),
        (('["at", "zone", "fare"]', '"at"'), 12, "Write a list of texts"),
    ]:
        assert change[0] in KAFKA
        found = wrong(written(before + KAFKA.replace(*change) + rest))
        assert any(at == line and says in told for at, told in found), (change, found)


def test_every_mistake_is_told_at_once(written):
    text = (
        GOOD.replace('"1 hour"', '"1 month"').replace("count", "cnt").replace('"10 minutes"', "10").replace("[tiles]", "[tiles]\nsize = 1")
    )
    assert [at for at, _ in wrong(written(text))] == [4, 14, 16, 27]


def test_what_is_not_toml_or_no_file_is_told(written, tmp_path):
    assert wrong(written(GOOD.replace('"taxis"', "taxis")))[0][0] == 1
    assert "this is not TOML" in wrong(written(GOOD + "[[windows\n"))[0][1]
    with pytest.raises(DefinitionError, match="does not exist"):
        document.read(tmp_path / "none.toml")
    with pytest.raises(DefinitionError, match="is not a text file"):
        document.read(tmp_path)
    assert wrong(written(""))  # and an empty one lacks everything


def test_lines_are_found_past_lists_strings_and_nested_tables():
    text = '''\
a = [
  1, # ] not this one
  2,
]
b = """
c = 3
"""
"d e".f = 4
[[t]]
x = 1
[t.inner]
y = "[" # open
z = 2
[[t]]
x = 2
'''
    assert lines(text) == {
        ("a",): 1,
        ("b",): 5,
        ("d e", "f"): 8,
        ("t", 0): 9,
        ("t", 0, "x"): 10,
        ("t", 0, "inner"): 11,
        ("t", 0, "inner", "y"): 12,
        ("t", 0, "inner", "z"): 13,
        ("t", 1): 14,
        ("t", 1, "x"): 15,
    }
    assert line_of(lines(text), ("t", 1, "aggs", "n")) == 14


@pytest.mark.parametrize(
    "hostile",
    [
        'a = 1 # """ opens nothing',
        'a = \'"""\'',
        'a = [ """\n[x]\nnext = 0\n""", 2 ]',
        'a = [\n"""\n]\n""", # ]\n]',
        'a = "x\u2028y\x85z"',
        'a = """it ends with quotes""""" # so',
        'a = [ { x = "}" },\n { x = 2 } ]',
        '"a\\"=b".c = 1',
        '["a]b".c]\nd = "#"',
    ],
)
def test_lines_after_hostile_text_are_right(hostile):
    text = f"{hostile}\nnext = 1\n[[last]]\nkey = 2\n"
    tomllib.loads(text)
    found = {path[-1]: line for path, line in lines(text).items()}
    assert found["next"] == hostile.count("\n") + 2
    assert found["key"] == hostile.count("\n") + 4


def test_a_quoted_key_has_the_name_that_it_means():
    assert lines('"a\\"=b".c = 1\n["d]e"]\n') == {('a"=b', "c"): 1, ("d]e",): 2}


def test_expressions_reach_no_further_than_aggregations():
    assert aggregation('sum("dep delay", where=ok)') == agg.sum("dep delay", where="ok")
    assert aggregation("histogram(fare, [0, 10, 20])") == agg.histogram("fare", [0, 10, 20])
    for text in ("define(lift=1)", "__import__('os')", "agg.sum(x)", "sum(x)(y)", "1", "", "struct(sum(x))", "sum(lambda: 0)", 7):
        with pytest.raises(ValueError):
            aggregation(text)
