"""JSON in Kafka to features in Kafka and Parquet, by a pipeline file; the broker dies in mid-stream; the same as batch over the topic."""

import collections
import datetime as dt
import json
import os
import random
import re
import signal
import subprocess
import sys
import threading

import pyarrow.parquet as pq
import pytest

from tests.kafka.broker import Broker

kafka = pytest.importorskip("kafka", reason="kafka-python, of the extra test, is not installed")

pytestmark = [pytest.mark.kafka, pytest.mark.timeout(900)]

BASE = dt.datetime(2024, 3, 1, tzinfo=dt.UTC)
PIPELINE = """
name = "purchases"
time = "ts"
key = "user"
watermark = "20 seconds"
checkpoint = "checkpoint"
trigger = "1 second"
retries = 30

[source]
format = "kafka"
value = "json"
value_schema = "ts timestamp, user struct<id: string>, cents long"
select = ["ts", "user.id as user", "cents / 100 as spent"]
where = "user.id is not null"
dead_letters = {{ format = "kafka", options = {{ kafka.bootstrap.servers = "{servers}", topic = "dead" }} }}

[source.options]
subscribe = "purchases"
startingOffsets = "earliest"
kafka.bootstrap.servers = "{servers}"
kafka.default.api.timeout.ms = 4000
kafka.request.timeout.ms = 3000
fetchOffset.numRetries = 1

[[windows]]
name = "features"
range = "5 minutes"
slide = "10 seconds"
aggs = {{ n = "count", spent = "sum(spent)", high = "max(spent)" }}
sink = {{ format = "kafka", options = {{ kafka.bootstrap.servers = "{servers}", topic = "features" }} }}

[[windows]]
name = "kept"
range = "5 minutes"
slide = "10 seconds"
aggs = {{ n = "count", spent = "sum(spent)", high = "max(spent)" }}
sink = {{ format = "parquet", path = "kept", batch_path = "batch" }}
"""


def produced(rng, start, seconds, count):
    """Messages of a stretch of time, in any order, at most 15 seconds late; one in twenty can't be parsed."""
    out = []
    for i in range(count):
        at = BASE + dt.timedelta(seconds=start + seconds * i / count - rng.random() * 15)
        good = {"ts": at.isoformat(), "user": {"id": f"user-{rng.randrange(5)}"}, "cents": rng.randrange(1, 10_000)}
        out.append(
            (good, json.dumps(good)) if rng.random() > 0.05 else (None, rng.choice(['{"ts": ', "not json", f'{{"ts": "never {i}"}}']))
        )
    return out


def send(broker, messages):
    producer = kafka.KafkaProducer(bootstrap_servers=broker.servers)
    for number, (_, text) in enumerate(messages):
        producer.send("purchases", text.encode(), partition=number % 2)
    producer.flush()
    producer.close()


def read_topic(broker, topic):
    consumer = kafka.KafkaConsumer(topic, bootstrap_servers=broker.servers, auto_offset_reset="earliest", consumer_timeout_ms=5000)
    found = [(message.key, message.value) for message in consumer]
    consumer.close()
    return found


class Running:
    """`sash run` in a process of its own; what it says is read as it comes."""

    def __init__(self, file):
        command = [sys.executable, "-m", "sash.cli", "run", str(file), "--master", "local[2]"]
        self.process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, start_new_session=True)
        self.said = []
        self._changed = threading.Condition()
        threading.Thread(target=self._read, daemon=True).start()

    def _read(self):
        for line in self.process.stdout:
            with self._changed:
                self.said.append(line.rstrip())
                self._changed.notify_all()

    def wait_for(self, what, patience=240):
        """Wait until a line fits, from here on."""
        seen = len(self.said)

        def come():
            return any(what(line) for line in self.said[seen:])

        with self._changed:
            self._changed.wait_for(lambda: come() or self.process.poll() is not None, patience)
            assert come(), "\n".join(self.said[-20:])

    def stop(self):
        os.killpg(self.process.pid, signal.SIGINT)
        assert self.process.wait(120) == 0, "\n".join(self.said[-20:])


def watermark_of(name, at):
    """Whether a line says that a query's watermark is at or after a time."""

    def fits(line):
        said = re.search(r"watermark (\d{4}-\d\d-\d\d [\d:]+\d)", line)
        return line.startswith(name) and said is not None and dt.datetime.fromisoformat(said[1]).replace(tzinfo=dt.UTC) >= at

    return fits


def expected(messages, upto):
    """Five minutes every ten seconds of every user, of the windows that end by a time: brute force."""
    found = collections.defaultdict(list)
    for message, _ in messages:
        if message is not None:
            at = (dt.datetime.fromisoformat(message["ts"]) - BASE).total_seconds()
            first = int(at // 10) * 10
            for start in range(first - 290, first + 10, 10):
                found[message["user"]["id"], start + 300].append(message["cents"])
    limit = (upto - BASE).total_seconds()
    return {key: (len(c), round(sum(c)), max(c)) for key, c in found.items() if key[1] <= limit}


def told(row, end):
    return (row["user"], round((end.replace(tzinfo=dt.UTC) - BASE).total_seconds())), (
        row["n"],
        round(row["spent"] * 100),
        round(row["high"] * 100),
    )


def test_json_in_kafka_to_features_with_a_broker_that_dies(tmp_path):
    rng = random.Random(20)
    broker = Broker(tmp_path)
    broker.start()
    try:
        admin = kafka.KafkaAdminClient(bootstrap_servers=broker.servers)
        admin.create_topics([kafka.admin.NewTopic(name, 2, 1) for name in ("purchases", "features", "dead")])
        admin.close()
        file = tmp_path / "pipeline.toml"
        file.write_text(PIPELINE.format(servers=broker.servers))
        messages = produced(rng, 0, 600, 2000)
        send(broker, messages)
        running = Running(file)
        running.wait_for(watermark_of("kept", BASE + dt.timedelta(seconds=560)))
        broker.kill()
        for _ in range(2):  # the broker stays away for more than one attempt
            running.wait_for(lambda line: "again in" in line)
        broker.start()
        more = produced(rng, 600, 600, 2000)
        send(broker, more)
        messages += more
        last = [
            (m, json.dumps(m)) for m in ({"ts": (BASE + dt.timedelta(seconds=1300)).isoformat(), "user": {"id": "user-0"}, "cents": 1},) * 2
        ]
        send(broker, last)  # one in each partition
        messages += last
        upto = BASE + dt.timedelta(seconds=1280)
        for name in ("kept", "features"):
            running.wait_for(watermark_of(name, upto))
        running.stop()

        want = expected(messages, upto)
        kept = pq.read_table(tmp_path / "kept").to_pylist()
        assert len(kept) == len({(row["user"], row["window_end"]) for row in kept})  # each once
        assert dict(told(row, row["window_end"]) for row in kept) == want

        sent = [(key, json.loads(value)) for key, value in read_topic(broker, "features")]
        assert all(key.decode() == row["user"] for key, row in sent)
        assert dict(told(row, dt.datetime.fromisoformat(row["window_end"])) for _, row in sent) == want  # Kafka may hold one twice

        bad = collections.Counter(text for message, text in messages if message is None)
        assert set(value.decode() for _, value in read_topic(broker, "dead")) == set(bad)
        assert sum(bad.values()) > 50

        done = subprocess.run(
            [sys.executable, "-m", "sash.cli", "run", "--batch", str(file), "--to", upto.isoformat()],
            capture_output=True,
            text=True,
            timeout=300,
        )
        assert done.returncode == 0, done.stderr
        batch = pq.read_table(tmp_path / "batch").to_pylist()
        assert dict(told(row, row["window_end"]) for row in batch) == want
    finally:
        broker.kill()
