"""A real Kafka broker on this machine alone: its jars from Maven, KRaft, one node, started, killed and started again by a test."""

import contextlib
import os
import signal
import socket
import subprocess
import tempfile
import time
import uuid
from base64 import urlsafe_b64encode
from pathlib import Path

import pyspark

from sash.spark.java import find_java

VERSION = "4.1.1"
PATIENCE = 90.0  # seconds until a broker answers


def jars():
    """The class path of the broker, downloaded by Spark's Ivy the first time."""
    ivy = next((Path(pyspark.__file__).parent / "jars").glob("ivy-*.jar"))
    with tempfile.NamedTemporaryFile("r") as found:
        command = [_java(), "-cp", str(ivy), "org.apache.ivy.Main", "-dependency", "org.apache.kafka", "kafka_2.13", VERSION]
        subprocess.run([*command, "-types", "jar", "bundle", "-cachepath", found.name], check=True, capture_output=True, timeout=600)
        return found.read().strip()


def _java():
    return str(find_java() / "bin" / "java")


def free_port():
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        return taken.getsockname()[1]


class Broker:
    """One node that is broker and controller."""

    def __init__(self, folder):
        self.folder, self._jars = folder, jars()
        self.port, controller = free_port(), free_port()
        self.servers = f"127.0.0.1:{self.port}"
        self._process = None
        self._config = folder / "server.properties"
        self._config.write_text(f"""
process.roles=broker,controller
node.id=1
controller.quorum.voters=1@127.0.0.1:{controller}
listeners=PLAINTEXT://127.0.0.1:{self.port},CONTROLLER://127.0.0.1:{controller}
advertised.listeners=PLAINTEXT://127.0.0.1:{self.port}
controller.listener.names=CONTROLLER
listener.security.protocol.map=CONTROLLER:PLAINTEXT,PLAINTEXT:PLAINTEXT
log.dirs={folder / "log"}
num.partitions=2
offsets.topic.replication.factor=1
offsets.topic.num.partitions=1
transaction.state.log.replication.factor=1
transaction.state.log.min.isr=1
group.initial.rebalance.delay.ms=0
auto.create.topics.enable=true
""")
        cluster = urlsafe_b64encode(uuid.uuid4().bytes).decode().rstrip("=")
        subprocess.run(
            [*self._command("kafka.tools.StorageTool"), "format", "-t", cluster, "-c", self._config], check=True, capture_output=True
        )

    def _command(self, main):
        return [_java(), "-Xmx384m", "-cp", self._jars, main]

    def start(self):
        """Start it, and wait until it answers."""
        with (self.folder / "broker.log").open("ab") as log:
            self._process = subprocess.Popen([*self._command("kafka.Kafka"), self._config], stdout=log, stderr=log, start_new_session=True)
        until = time.monotonic() + PATIENCE
        while time.monotonic() < until:
            assert self._process.poll() is None, (self.folder / "broker.log").read_text()[-2000:]
            with contextlib.suppress(OSError), socket.create_connection(("127.0.0.1", self.port), timeout=1):
                return
            time.sleep(0.2)  # between two attempts: a port that is not open yet refuses at once
        raise TimeoutError(f"no broker on {self.servers} after {PATIENCE} s")

    def kill(self):
        """End it as a crash does."""
        if self._process is not None and self._process.poll() is None:
            os.kill(self._process.pid, signal.SIGKILL)
            self._process.wait()
