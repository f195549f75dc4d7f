"""`sash run --check` finds what `sash run` would refuse: every mistake of a file in one go, each with its line and its fix."""

import json
import re

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from sash import agg, cli
from sash.wheel import TileStore

pytestmark = pytest.mark.spark

GOOD = """\
time = "at"               # 1
key = "zone"
watermark = "10 minutes"
checkpoint = "checkpoint"
max_ahead = "1 hour"      # 5
[source]
format = "parquet"
path = "in"
select = ["at", "zone", "fare", "tags"]
where = "fare >= 0"       # 10
[[windows]]
range = "1 hour"
slide = "1 minute"
aggs = { n = "count", fare = "mean(fare)" }
late = "flag"             # 15
sink = { format = "parquet", path = "out" }
[[rolling]]
lookbacks = ["1h", "30d/1h"]
aggs = { s = "sum(fare)" }
sink = { format = "json", path = "features", select = ["zone", "s_1h"], where = "s_1h > 1" }     # 20
[tiles]
grain = "1m"
path = "tiles"
aggs = { n = "count" }
[spark]
spark.jars = "spark-sql-kafka-0-10.jar"   # what is named is not downloaded
"""

KAFKA = 'sink = { format = "kafka", options = { topic = "t", kafka.bootstrap.servers = "127.0.0.1:9" }%s }'
PARQUET = 'sink = { format = "parquet", path = "out" }'

# what is changed, and what must be said: line -> words
WRONG = [
    ([('"fare >= 0"', '"fair >= 0"')], {10: "`fair` cannot be resolved"}),
    ([('"fare >= 0"', '"fare"')], {10: "BIGINT"}),
    ([('"tags"]', '"tugs", "upper("]')], {9: "'tugs' can't be computed"}),
    ([('"fare >= 0"', '"fair >= 0"'), ('"tags"]', '"tugs"]')], {10: "fair", 9: "tugs"}),
    ([('"at", "zone"', '"cast(at as string) as at", "zone"')], {1: "time='at' is of type string, not a timestamp"}),
    ([('"zone", "fare", "tags"', '"fare", "tags"')], {2: "key='zone' is not a column"}),
    ([("mean(fare)", "mean(fair)"), ("sum(fare)", "sum(far)")], {14: "'fair' is not a column", 19: "'far' is not a column"}),
    ([("mean(fare)", "mean(zone)")], {14: "agg.mean('zone') can't be computed of a column of type string"}),
    ([('"zone", "s_1h"', '"zone", "s_2h", "s_9h"')], {20: "'s_2h' can't be computed"}),
    ([('"s_1h > 1"', '"s_1h >"')], {20: "where: 's_1h >' can't be computed"}),
    ([('"zone", "s_1h"', '"zone", "s_1h as zone"')], {20: "two columns the name 'zone'"}),
    ([(PARQUET, KAFKA % ', select = ["zone as key", "n as value"]')], {16: "a value of type bigint"}),
    ([(PARQUET, 'sink = { format = "text", path = "out" }')], {16: "takes one column of text"}),
    (
        [(PARQUET, 'sink = { format = "csv", path = "out", select = ["zone", "struct(n, fare) as both"] }')],
        {16: "can't hold the column both"},
    ),
    ([(PARQUET, 'sink = { format = "parquet", path = "in/0.parquet/out" }')], {16: "0.parquet is a file"}),
    ([('"checkpoint"', '"in/0.parquet"')], {4: "0.parquet is a file"}),
    ([('path = "tiles"', 'path = "in"')], {23: "is there and is no tile store"}),
    ([('path = "tiles"', 'path = "old"')], {23: "its grain is 1h, not 1m"}),
    ([('path = "tiles"', 'path = "old"'), ('"1m"', '"1h"')], {23: "is written by the query other"}),
    ([('path = "tiles"', 'path = "nowhere://x/y"')], {23: "nowhere"}),
    ([('format = "parquet"\npath = "in"', 'format = "nosuchformat"')], {6: "the source can't be read"}),
    (
        [('path = "in"', 'path = "in"\nvalue = "json"\nvalue_schema = "at timestamp"')],
        {9: "takes the column value apart, and there is none"},
    ),
    (
        [('format = "parquet"\npath = "in"', 'format = "text"\npath = "in"\nvalue = "json"\nvalue_schema = "at timesamp"')],
        {10: "not understood"},
    ),
    (
        [('aggs = { n = "count" }', 'aggs = { n = "count" }\ntie = "nothing"'), ('"30d/1h"', '"30d/1h", "30d"')],
        {25: "tie='nothing'", 17: "two columns named s_30d"},
    ),
]


@pytest.fixture
def folder(tmp_path):
    (tmp_path / "in").mkdir()
    at = pa.array([0], pa.int64()).cast(pa.timestamp("us", "UTC"))
    pq.write_table(pa.table({"at": at, "zone": ["a"], "fare": [1], "tags": [["x"]]}), tmp_path / "in" / "0.parquet")
    old = TileStore.create(tmp_path / "old", aggs={"n": agg.count()}, grain="1h", key="zone")
    old.write(pa.table({"zone": ["a"], "slice_start": at, "n": [1]}), query="other", batch=0, watermark=3_600_000_000)
    return tmp_path


def check(folder, text, capsys):
    file = folder / "pipeline.toml"
    file.write_text(text)
    code = cli.main(["run", "--check", str(file)])
    said = capsys.readouterr().err
    found = {}
    for line, words in re.findall(rf"^{re.escape(str(file))}:(\d+): (.*)$", said, re.M):
        found.setdefault(int(line), []).append(words)
    return code, found, said


def test_wrong_pipelines_are_told_whole_and_a_right_one_is_right(shared, folder, capsys):
    code, found, said = check(folder, GOOD, capsys)
    assert (code, said) == (0, "")
    assert len(WRONG) >= 20
    missed = []
    for changes, expected in WRONG:
        text = GOOD
        for old, new in changes:
            assert old in text, old
            text = text.replace(old, new)
        code, found, said = check(folder, text, capsys)
        missed += [(changes, line, words, said) for line, words in expected.items() if not any(words in one for one in found.get(line, []))]
        assert code == 1, changes
        assert "Traceback" not in said
        assert "JVM stacktrace" not in said
    assert not missed
    made = {path.name for path in folder.iterdir()}
    assert made <= {"in", "old", "pipeline.toml", "checkpoint"}, made  # nothing was begun


def test_a_changed_definition_is_refused_before_it_starts_also_without_new_rows(shared, folder, capsys):
    file = folder / "pipeline.toml"
    text = GOOD[: GOOD.index("[[windows]]")] + GOOD[GOOD.index("[[rolling]]") : GOOD.index("[tiles]")]
    file.write_text(text)
    assert cli.main(["run", str(file)]) == 0
    capsys.readouterr()
    code, _, _ = check(folder, text, capsys)
    assert code == 0
    code, _, said = check(folder, text.replace('"1h", "30d/1h"', '"1h", "90d"'), capsys)
    assert code == 1
    assert "this state was stored with another definition" in said
    assert cli.main(["run", str(file)]) == 1
    assert "this state was stored with another definition" in capsys.readouterr().err


def test_values_are_taken_apart_and_what_can_not_be_is_told_apart(shared, tmp_path, capsys):
    (tmp_path / "in").mkdir()
    good = [{"ts": f"2024-01-01T00:00:{i:02d}Z", "user": {"id": "ab"[i % 2]}, "cents": i} for i in range(30)]
    bad = ["{", "", '{"ts": "soon", "user": {"id": "a"}, "cents": 1}', '{"ts": "2024-01-01T00:00:00Z", "user": 7, "cents": 1}', "[1, 2"]
    late = {"ts": "2024-01-01T01:00:00Z", "user": {"id": "a"}, "cents": 0}
    lines = [*(json.dumps(row) for row in good), *bad, json.dumps(late)]
    (tmp_path / "in" / "0.txt").write_text("\n".join(lines) + "\n")
    file = tmp_path / "pipeline.toml"
    file.write_text("""
time = "ts"
key = "user"
watermark = "1s"
checkpoint = "checkpoint"
[source]
format = "text"
path = "in"
value = "json"
value_schema = "ts timestamp, user struct<id: string>, cents long"
where = "cents % 3 = 0"
select = ["ts", "user.id as user", "cents / 100 as fare"]
dead_letters = { format = "json", path = "dead" }
[[windows]]
range = "1m"
aggs = { n = "count", fare = "sum(fare)" }
sink = { format = "parquet", path = "out", where = "n > 0", select = ["user", "n", "round(fare * 100) as cents"] }
""")
    assert cli.main(["run", str(file)]) == 0
    said = capsys.readouterr().out
    assert f"{len(bad)} not parsed" in said
    rows = pq.read_table(tmp_path / "out").to_pylist()
    want = {user: [row["cents"] for row in good if row["user"]["id"] == user and row["cents"] % 3 == 0] for user in "ab"}
    assert {row["user"]: (row["n"], row["cents"]) for row in rows} == {user: (len(c), sum(c)) for user, c in want.items()}
    dead = [json.loads(line)["value"] for path in (tmp_path / "dead").glob("*.json") for line in path.read_text().splitlines()]
    assert sorted(dead) == sorted(bad)
