"""Everything that can fall: a server, a broker, a database and agents, killed and started again by chance."""

import json
import os
import random
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from tests.conftest import answers, free_port, wait_until
from tests.integration.kafka import Kafka
from tests.integration.postgres import Cluster

# Seconds between two starts of one program.
PAUSE = 1.0
NODES = ("n0", "n1", "n2")


class Process:
    """A program of ours whose words go to a file, so that nobody needs to listen."""

    def __init__(self, words: list[str], log: Path, home: Path) -> None:
        self._words, self._log = words, log
        self._environment = {**os.environ, "JOBSIGHT_HOME": str(home)}
        self._process: subprocess.Popen[bytes] | None = None
        self._started = 0.0

    def start(self) -> None:
        self._started = time.monotonic()
        with self._log.open("ab") as log:
            self._process = subprocess.Popen(
                [sys.executable, *self._words], stdout=log, stderr=log, env=self._environment
            )

    def revive(self) -> None:
        if not self.running and time.monotonic() - self._started > PAUSE:
            self.start()

    @property
    def running(self) -> bool:
        return self._process is not None and self._process.poll() is None

    @property
    def pid(self) -> int:
        return self._process.pid if self._process and self.running else 0

    def end(self, number: int = signal.SIGKILL, patience: float = 120.0) -> int:
        if self._process is None:
            return 0
        if self.running:
            self._process.send_signal(number)
        return self._process.wait(patience)

    def said(self) -> str:
        return self._log.read_text() if self._log.exists() else ""


class Rig:
    """One combination: how messages travel, and what keeps them."""

    def __init__(self, folder: Path, broker: Kafka | None, cluster: Cluster | None, seed: int) -> None:
        self.folder, self.broker, self.cluster = folder, broker, cluster
        self._chance = random.Random(seed)
        self.falls: dict[str, int] = {}
        self.store = cluster.database() if cluster else str(folder / "store")
        self.port = free_port()
        self.url = f"http://127.0.0.1:{self.port}"
        settings: dict[str, Any] = {
            "store": {"path": str(folder / "store")},
            "serve": {"listen": f"127.0.0.1:{self.port}"},
        }
        if cluster:
            settings["store"]["url"] = self.store
        if broker:
            settings["serve"]["kafka"] = {"brokers": [broker.address], "group": self._group, "prefix": self._group}
        (folder / "serve.yaml").write_text(json.dumps(settings))
        words = ["-m", "jobsight", "serve", "--settings", str(folder / "serve.yaml")]
        self.server = Process(words, folder / "server.out", folder / "home")
        sink = self._kafka_sink() if broker else {"http": {"url": f"{self.url}/ingest", "window": 0}}
        config = {"sink": sink, "folder": str(folder), "nodes": NODES}
        (folder / "sender.json").write_text(json.dumps(config))
        words = ["-m", "tests.integration.sender", str(folder / "sender.json")]
        self.agents = Process(words, folder / "agents.out", folder / "home")

    @property
    def _group(self) -> str:
        return self.folder.name

    def _kafka_sink(self) -> dict[str, Any]:
        assert self.broker
        return {"kafka": {"brokers": [self.broker.address], "prefix": self._group, "window": 0}}

    def tend(self) -> None:
        """What systemd does: what has ended is started again. A server that finds no database gives up."""
        for one in (self.server, self.agents):
            one.revive()

    def storm(self, seconds: float) -> None:
        """Blows by chance. What fell stays down for a moment; now and then two are down together."""
        blows: dict[str, Callable[[], None]] = {"server": self._server, "agents": self._agents}
        if self.broker:
            blows["broker"] = self._broker
        if self.cluster:
            blows["database"] = self._database
        end = time.monotonic() + seconds
        # Each at least once, then as it comes.
        waiting = list(blows)
        self._chance.shuffle(waiting)
        while waiting or time.monotonic() < end:
            self._quiet(self._chance.uniform(0.3, 3.0))
            name = waiting.pop() if waiting else self._chance.choice(list(blows))
            self.falls[name] = self.falls.get(name, 0) + 1
            blows[name]()

    def _quiet(self, seconds: float) -> None:
        end = time.monotonic() + seconds
        while time.monotonic() < end:
            self.tend()
            time.sleep(0.1)

    def _server(self) -> None:
        self.server.end()
        time.sleep(self._chance.uniform(0, 2))

    def _agents(self) -> None:
        self.agents.end()
        time.sleep(self._chance.uniform(0, 1))

    def _broker(self) -> None:
        assert self.broker
        self.broker.kill()
        if self._chance.random() < 0.3:
            self.server.end()
        self._quiet(self._chance.uniform(0, 2))
        self.broker.start()

    def _database(self) -> None:
        assert self.cluster
        self.cluster.stop(signal.SIGQUIT)
        if self._chance.random() < 0.3:
            self.server.end()
        self._quiet(self._chance.uniform(0, 2))
        self.cluster.start()

    def settle(self) -> None:
        """Everything is up; all that was sent arrives; then all is stopped in good order."""
        wait_until(self._up, 60, "the server answers")
        code = self.agents.end(signal.SIGTERM)
        assert code == 0, self.agents.said()[-2000:]
        if self.broker:
            broker, name = self.broker, self._group
            wait_until(lambda: broker.drained(name, f"{name}."), 120, "all is read from Kafka")
        code = self.server.end(signal.SIGTERM)
        assert code == 0, self.server.said()[-2000:]

    def _up(self) -> bool:
        self.tend()
        ready = self.folder / "ready"
        return ready.exists() and ready.read_text() == f"{self.agents.pid}" and answers(f"{self.url}/health")

    def stop(self) -> None:
        """Whatever happened."""
        self.agents.end()
        self.server.end()
