"""A real Apache Kafka on this machine: one broker that is its own controller, in a temporary directory.

It listens on free ports of the loopback, and is stopped by process id. `scripts/kafka` fetches its jars.
"""

import base64
import json
import os
import shutil
import signal
import subprocess
import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from confluent_kafka import Consumer, KafkaException, Producer, TopicPartition
from confluent_kafka.admin import AdminClient

from jobsight.ship.part import HEADER, Part
from tests.conftest import free_port, wait_until

SCRIPT = Path(__file__).parent.parent.parent / "scripts" / "kafka"

PROPERTIES = """\
process.roles=broker,controller
node.id=1
controller.quorum.voters=1@127.0.0.1:{controller}
controller.listener.names=CONTROLLER
listeners={protocol}://127.0.0.1:{port},CONTROLLER://127.0.0.1:{controller}
advertised.listeners={protocol}://127.0.0.1:{port}
inter.broker.listener.name={protocol}
listener.security.protocol.map={protocol}:{protocol},CONTROLLER:PLAINTEXT
log.dirs={base}/log
num.partitions=4
offsets.topic.num.partitions=1
offsets.topic.replication.factor=1
group.initial.rebalance.delay.ms=0
message.max.bytes={largest}
"""

SECURE = """\
ssl.keystore.type=PEM
ssl.keystore.location={base}/both.pem
ssl.truststore.type=PEM
ssl.truststore.location={base}/cert.pem
sasl.enabled.mechanisms=SCRAM-SHA-512
sasl.mechanism.inter.broker.protocol=SCRAM-SHA-512
listener.name.sasl_ssl.scram-sha-512.sasl.jaas.config=org.apache.kafka.common.security.scram.ScramLoginModule \
required username="{user}" password="{password}";
"""
OPENSSL = (
    "openssl req -x509 -newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes -days 2 -subj /CN=broker "
    "-addext subjectAltName=IP:127.0.0.1"
)
USER, PASSWORD = "reader", "open sesame"

# Small and quick to start, in place of quick after an hour.
JAVA = ("java", "-Xmx256m", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1")


class Kafka:
    """One broker, which can be killed and comes back with what it had."""

    def __init__(self, base: Path, jars: Path, largest: int, *, secure: bool) -> None:
        self.base = base
        self._java = (*JAVA, "-cp", f"{jars}/*")
        self._properties = base / "server.properties"
        self._process: subprocess.Popen[bytes] | None = None
        self._secure = secure
        port = free_port()
        self.address = f"127.0.0.1:{port}"
        self.access: dict[str, str] = {}
        """What settings need besides the address."""
        protocol = "SASL_SSL" if secure else "PLAINTEXT"
        text = PROPERTIES.format(base=base, port=port, controller=free_port(), largest=largest, protocol=protocol)
        name = base64.urlsafe_b64encode(uuid.uuid4().bytes).decode().rstrip("=")
        command = [*self._java, "kafka.tools.StorageTool", "format", "-t", name, "-c", str(self._properties)]
        if secure:
            text += SECURE.format(base=base, user=USER, password=PASSWORD)
            command += ["--add-scram", f"SCRAM-SHA-512=[name={USER},password={PASSWORD}]"]
            self._make_secrets()
        self._properties.write_text(text)
        subprocess.run(command, check=True, capture_output=True, timeout=60)

    def _make_secrets(self) -> None:
        """A certificate that vouches for itself, and a password in a file."""
        key, cert, password = (self.base / name for name in ("key.pem", "cert.pem", "password"))
        made = f"{OPENSSL} -keyout {key} -out {cert}".split()
        subprocess.run(made, check=True, capture_output=True)
        (self.base / "both.pem").write_text(key.read_text() + cert.read_text())
        password.write_text(PASSWORD + "\n")
        self.access = {"ca_file": str(cert), "username": USER, "password_file": str(password)}

    def start(self) -> None:
        with (self.base / "broker.out").open("ab") as log:
            self._process = subprocess.Popen(
                (*self._java, "kafka.Kafka", str(self._properties)), stdout=log, stderr=log, cwd=self.base
            )
        wait_until(self._answers, 60, "the broker answers")

    def _answers(self) -> bool:
        assert self._process, "start it first"
        assert self._process.poll() is None, (self.base / "broker.out").read_text()
        try:
            return bool(self._admin().list_topics(timeout=1).brokers)
        except KafkaException:
            return False

    def kill(self) -> None:
        """As the kernel or a power cut would."""
        self._end(signal.SIGKILL)

    def stop(self) -> None:
        self._end(signal.SIGTERM)

    def _end(self, number: int) -> None:
        if self._process:
            self._process.send_signal(number)
            self._process.wait(60)
        self._process = None

    def put(self, topic: str, *values: bytes | Part | None, key: bytes = b"n1") -> None:
        """Records in one partition, on the disk of the broker when this returns."""
        failed: list[Any] = []
        client = Producer({**self._client(), "acks": "all", "partitioner": "murmur2_random"})

        def report(error: Any, _: Any) -> None:
            failed.extend([error] if error else [])

        for value in values:
            if isinstance(value, Part):
                client.produce(topic, value.content, key, on_delivery=report, headers=[(HEADER, value.header())])
            else:
                client.produce(topic, value, key, on_delivery=report)
        assert client.flush(30) == 0, "no broker answers"
        assert failed == []

    def progress(self, group: str, beginning: str) -> tuple[int, int]:
        """Of the topics whose names begin so: how many records the group has committed, and how many there are."""
        reader = Consumer({**self._client(), "group.id": group})
        try:
            topics = reader.list_topics(timeout=10).topics
            parts = [
                TopicPartition(name, part)
                for name, topic in topics.items()
                if name.startswith(beginning)
                for part in topic.partitions
            ]
            committed = sum(max(part.offset, 0) for part in reader.committed(parts, timeout=10)) if parts else 0
            return committed, sum(reader.get_watermark_offsets(part, timeout=10)[1] for part in parts)
        finally:
            reader.close()

    def drained(self, group: str, beginning: str) -> bool:
        """Whether there are records, and the group has committed them all."""
        committed, written = self.progress(group, beginning)
        return 0 < written == committed

    def members(self, group: str) -> list[int]:
        """How many partitions each member of the group has; none as long as the broker does not know of the group."""
        admin = self._admin()
        try:
            found = admin.describe_consumer_groups([group])[group].result(10)
        except KafkaException:
            return []
        return sorted(len(member.assignment.topic_partitions) for member in found.members)

    def _admin(self) -> AdminClient:
        return AdminClient(self._client())

    def _client(self) -> dict[str, Any]:
        client: dict[str, Any] = {"bootstrap.servers": self.address, "log_level": 0}
        if self._secure:
            client |= {"security.protocol": "SASL_SSL", "sasl.mechanism": "SCRAM-SHA-512", "sasl.username": USER}
            client |= {"sasl.password": PASSWORD, "ssl.ca.location": self.access["ca_file"]}
        return client


@contextmanager
def broker(base: Path, largest: int = 2**20, *, secure: bool = False) -> Iterator[Kafka]:
    """A broker that runs; `largest` is the largest message it takes, packed; `secure` means TLS and a password."""
    jars = Path(subprocess.run([SCRIPT, "--where"], check=True, capture_output=True, text=True).stdout.strip())
    if not jars.is_dir() or not shutil.which("java"):
        if os.environ.get("CI") == "true":
            pytest.fail("no Apache Kafka here: run scripts/kafka; in CI reading from Kafka must be tested")
        pytest.skip(
            "APACHE KAFKA IS MISSING, SO NOTHING HERE SHOWS THAT READING FROM IT LOSES NOTHING: RUN scripts/kafka"
        )
    made = Kafka(base, jars, largest, secure=secure)
    made.start()
    try:
        yield made
    finally:
        made.stop()


def settings(path: Path, **values: Any) -> str:
    """A settings file; JSON is YAML."""
    path.write_text(json.dumps(values))
    return str(path)
