"""On a real cluster, over Spark Connect, and on the oldest Spark: the same rows as here."""

import json
import os
import random
import signal
import socket
import subprocess
import sys
import sysconfig
import zipfile
from pathlib import Path

import pyspark
import pytest

import sash
from sash.spark import rolling, windows
from sash.spark.java import find_java
from tests.spark import jobs
from tests.spark.arrivals import EVENTS, arrival, cut, rows

pytestmark = [pytest.mark.spark, pytest.mark.stress]  # half a minute and more each: other JVMs are started


@pytest.fixture(scope="module")
def events():
    rng = random.Random(41)
    # The last event lets the watermark pass all others.
    return [*cut(rng, arrival(rng, 600, ["a", "b", "c", None], spread=20), 3), [("z", 4000, 0)]]


@pytest.fixture
def source(stream, events):
    return stream(EVENTS, rows(events))


def run_job(source, name, python=sys.executable, env=None, **settings):
    """Run jobs.py on a stream's files, and return what came out."""
    given = [f"{key}={value}" for key, value in settings.items()]
    script = [python, Path(__file__).with_name("jobs.py"), source.folder, name, *given]
    log = source.folder / f"{name}.log"
    with log.open("w") as file:
        done = subprocess.run(script, env=env, stdout=file, stderr=file, check=False, timeout=280).returncode
    assert done == 0, log.read_text()[-8000:]
    return json.loads((source.folder / f"{name}.json").read_text())


def check(out, source):
    """Stream and batch elsewhere gave what batch gives here."""
    here = source.batch()
    aggs = jobs.aggs()

    def same(given, df, but=0):
        expected = sorted(map(jobs.plain, df.collect()), key=repr)
        assert len(expected) - but > 200
        assert sorted(given, key=repr) == [row for row in expected if not but or row[0] != "z"]

    same(out["batch"], windows(here, aggs=aggs, **jobs.WINDOWS))
    same(out["rolling"], rolling(here, aggs=aggs, **jobs.ROLLING))
    # What the last event makes is not final: it is the newest.
    same(out["stream windows"], windows(here, aggs=aggs, **jobs.WINDOWS), but=6)
    same(out["stream rolling"], rolling(here, aggs=aggs, **jobs.ROLLING), but=1)
    assert out["each"] == 6 * 601
    assert "<- chosen" in out["explain stream windows"]


def test_connect_gives_the_same(source):
    check(run_job(source, "connect", remote="local[2]"), source)


def bare_python(folder):
    """An interpreter with everything that this one has, but Sash."""
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", folder], check=True)
    site = folder / Path(sysconfig.get_path("purelib")).relative_to(sys.prefix)
    for place in [Path(p) for p in sys.path if p.endswith("site-packages")]:
        for entry in place.iterdir():
            if not entry.name.startswith(("sash", "_sash", "a_src", "__editable__", "main.pth", "__pycache__")):
                (site / entry.name).unlink(missing_ok=True)
                (site / entry.name).symlink_to(entry)
    return folder / "bin" / "python"


def archive(path):
    """The wheel as an archive: what pip installed, in the folders that the wheel has."""
    package = Path(sash.__file__).parent
    native = Path(sash._core.__file__)
    with zipfile.ZipFile(path, "w") as wheel:
        for file in package.rglob("*"):
            if file.is_file() and "__pycache__" not in file.parts:
                wheel.write(file, Path("sash") / file.relative_to(package))
        if native.parent != package:
            wheel.write(native, Path("sash") / native.name)
    return path


def without_compilers(folder):
    """A PATH with every program but compilers."""
    folder.mkdir()
    for place in reversed(os.environ["PATH"].split(os.pathsep)):
        for program in Path(place).iterdir() if Path(place).is_dir() else []:
            if not any(part in program.name for part in ("cc", "g++", "c++", "clang", "gcc")):
                (folder / program.name).unlink(missing_ok=True)
                (folder / program.name).symlink_to(program)
    return str(folder)


def free_ports(count):
    sockets = [socket.socket() for _ in range(count)]
    for s in sockets:
        s.bind(("127.0.0.1", 0))
    ports = [s.getsockname()[1] for s in sockets]
    for s in sockets:
        s.close()
    return ports


@pytest.fixture
def cluster(tmp_path):
    """A standalone cluster on loopback: a master, two workers of one core; gives its address."""
    home = Path(pyspark.__file__).parent
    port, *others = free_ports(6)
    java = str(find_java())
    env = {name: value for name, value in os.environ.items() if not name.startswith(("PYTHON", "PYSPARK", "SPARK"))}
    env |= {"SPARK_HOME": str(home), "JAVA_HOME": java, "SPARK_LOCAL_IP": "127.0.0.1", "PATH": without_compilers(tmp_path / "programs")}
    running = []

    def start(name, said, *args):
        log = (tmp_path / f"{name}.log").open("w+")
        command = [home / "bin" / "spark-class", *map(str, args)]
        process = subprocess.Popen(command, env=env, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True, start_new_session=True)
        running.append((process, log))
        for line in process.stderr:
            log.write(line)
            if said in line:
                return
        raise AssertionError(f"{name} ended: {log.name}")

    deploy = "org.apache.spark.deploy"
    master = f"spark://127.0.0.1:{port}"
    try:
        start("master", "New state: ALIVE", f"{deploy}.master.Master", "--host", "127.0.0.1", "--port", port, "--webui-port", others[0])
        for i in (1, 2):
            ports = ("--port", others[2 * i - 1], "--webui-port", others[2 * i])
            size = ("--cores", 1, "--memory", "1500m", "--work-dir", tmp_path / f"work{i}")
            start(f"worker{i}", "Successfully registered", f"{deploy}.worker.Worker", "--host", "127.0.0.1", *ports, *size, master)
        yield master
    finally:
        for process, log in running:
            os.killpg(process.pid, signal.SIGKILL)
            process.wait()
            process.stderr.close()
            log.close()


def test_a_cluster_with_the_wheel_shipped_gives_the_same(source, cluster, tmp_path):
    wheel = archive(tmp_path / "sash.zip")
    python = bare_python(tmp_path / "python")
    assert subprocess.run([python, "-c", "import pyarrow, pandas, sash"], capture_output=True, check=False).returncode
    settings = {
        "spark.archives": f"{wheel}#shipped",
        "spark.executorEnv.PYTHONPATH": "shipped",
        "spark.executor.memory": "1g",
        "spark.driver.host": "127.0.0.1",
        "spark.driver.bindAddress": "127.0.0.1",
        "spark.sql.shuffle.partitions": 2,
        "spark.ui.enabled": "false",
    }
    # The driver runs that interpreter too, to ask the operator for its state's schema: there, and only there, Sash is on its path.
    env = {**os.environ, "PYSPARK_PYTHON": str(python), "PYSPARK_DRIVER_PYTHON": sys.executable, "SPARK_LOCAL_IP": "127.0.0.1"}
    env["PYTHONPATH"] = str(Path(sash.__file__).parents[1])
    out = run_job(source, "cluster", env=env, master=cluster, **settings)
    check(out, source)
    places = {file for file, _ in out["where"]}
    assert len(places) == 2, places
    assert all("shipped/sash/_core" in place for place in places)
    assert {compilers for _, compilers in out["where"]} == {"[]"}
