"""`sash run` where Spark does not start: one sentence, with the line of the file, and no traceback."""

import os

import pytest

from sash import cli

pytest.importorskip("pyspark", reason="the extra spark is not installed")

PIPELINE = """\
time = "at"
watermark = "1s"
checkpoint = "checkpoint"
packages = ["com.example:nothing_2.13:9.9"]
[source]
format = "parquet"
path = "in"
[[windows]]
range = "1m"
aggs = { n = "count" }
sink = { format = "console" }
"""


@pytest.mark.parametrize(
    ("log", "says"),
    [
        (
            b"java.lang.RuntimeException: [unresolved dependency: com.example#nothing_2.13;9.9: not found]\n\tat x\n",
            "{file}:4: com.example:nothing_2.13:9.9 can't be downloaded: no repository that Spark asks has it. "
            "Check its name and version, and the network.",
        ),
        (b"java.lang.OutOfMemoryError\n", "sash run: Spark did not start: Java gateway process exited. What it said is in {log}"),
    ],
)
def test_a_spark_that_does_not_start_is_one_sentence(tmp_path, monkeypatch, capfd, log, says):
    (tmp_path / "in").mkdir()
    file = tmp_path / "pipeline.toml"
    file.write_text(PIPELINE)

    def session(*names, **conf):
        assert conf["spark.jars.packages"] == "com.example:nothing_2.13:9.9"
        os.write(2, log)  # as the JVM does
        raise RuntimeError("Java gateway process exited.\nmore")

    monkeypatch.setattr("sash.spark.session", session)
    assert cli.main(["run", "--check", str(file)]) == 1
    err = capfd.readouterr().err
    assert says.format(file=file, log=tmp_path / "checkpoint" / "spark.log") in err
    assert "Traceback" not in err
    assert "java.lang" not in err


def test_from_and_to_are_of_a_batch(tmp_path, capsys):
    assert cli.main(["run", str(tmp_path / "p.toml"), "--from", "2024-03-01"]) == 1
    assert "Add --batch, or drop them" in capsys.readouterr().err
