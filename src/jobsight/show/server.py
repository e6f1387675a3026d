"""The server process: the application on uvicorn, and a thread that digests what comes in."""

import json
import os
import signal
import socket
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

import uvicorn

from jobsight import files
from jobsight.analyse.keeper import open_database, open_store
from jobsight.ingest.http import Append
from jobsight.ingest.kafka import Consumer
from jobsight.ingest.quarantine import Quarantine
from jobsight.settings import Kafka, Settings
from jobsight.show.app import application
from jobsight.store.protocol import Store

DIGEST = 1.0
TEND = 300.0


class ListenError(RuntimeError):
    """The address cannot be listened on."""


def listen(address: str) -> socket.socket:
    """A bound socket, or a sentence that says why not."""
    host, _, port = address.rpartition(":")
    if not port.isdecimal():
        raise ListenError(f"expected an address such as 127.0.0.1:9020, got {address!r}")
    host = host.strip("[]") or "127.0.0.1"
    link = socket.socket(socket.AF_INET6 if ":" in host else socket.AF_INET, socket.SOCK_STREAM)
    link.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        link.bind((host, int(port)))
        # From here on senders wait for an answer in place of being refused one.
        link.listen(128)
    except (OSError, OverflowError) as error:
        link.close()
        raise ListenError(f"cannot listen on {address}: {error}") from None
    return link


def url(link: socket.socket) -> str:
    host, port = link.getsockname()[:2]
    host = {"0.0.0.0": "127.0.0.1", "::": "[::1]"}.get(host, f"[{host}]" if ":" in host else host)  # noqa: S104
    return f"http://{host}:{port}"


class Digester:
    """Loads what the log has, every second; every few minutes moves what is over to files and drops what is too old.

    In two threads: what comes in does not wait while a day is sorted.
    """

    def __init__(self, store: Store, keep: float) -> None:
        self._store = store
        self._keep = keep
        self._stop = threading.Event()
        self._threads = [
            threading.Thread(target=self._repeat, args=("digesting", store.digest, DIGEST), name="digest"),
            threading.Thread(target=self._repeat, args=("compaction", self._tend, TEND), name="tend"),
        ]
        for thread in self._threads:
            thread.start()

    def stop(self) -> None:
        self._stop.set()
        for thread in self._threads:
            thread.join()
        self._store.digest()

    def _tend(self) -> None:
        now = time.time()
        self._store.compact(now)
        self._store.forget(now - self._keep)

    def _repeat(self, name: str, act: Callable[[], object], every: float) -> None:
        while not self._stop.wait(every):
            try:
                act()
            except Exception as error:  # noqa: BLE001
                # Whatever it was, what comes in must go on being loaded.
                print(f"jobsight: {name} failed and is tried again: {error}", file=sys.stderr, flush=True)


@contextmanager
def announced(path: str, address: str) -> Iterator[None]:
    """While the server runs the command line finds it here."""
    file = os.path.join(path, "server.json")
    files.replace(file, json.dumps({"url": address, "pid": os.getpid()}).encode())
    try:
        yield
    finally:
        os.unlink(file)


@contextmanager
def consuming(options: Kafka | None, append: Append, quarantine: Quarantine) -> Iterator[None]:
    """While this lasts messages come from Kafka too, if the settings name brokers."""
    if options is None:
        yield
        return
    try:
        consumer = Consumer(options, append, quarantine)
    except ValueError as error:
        raise ListenError(f"serve.kafka: {error}") from None
    try:
        yield
    finally:
        consumer.stop()


class Server(uvicorn.Server):
    """uvicorn, stopped our way: what feeds us is stopped first, and no signal is raised a second time."""

    def __init__(self, config: uvicorn.Config, before_stop: Callable[[], None]) -> None:
        super().__init__(config)
        self._before_stop = before_stop

    @contextmanager
    def capture_signals(self) -> Iterator[None]:
        for number in (signal.SIGTERM, signal.SIGINT):
            signal.signal(number, lambda *_: threading.Thread(target=self._stop).start())
        yield

    def _stop(self) -> None:
        self._before_stop()
        self.should_exit = True


def serve(settings: Settings, link: socket.socket, before_stop: Callable[[], None] = lambda: None) -> None:
    """Serve until SIGTERM or SIGINT."""
    store = _opened(settings)
    token = _token(settings.serve.token_file)
    host = link.getsockname()[0]
    if not token and host not in ("127.0.0.1", "::1"):
        print(
            f"jobsight: listening on {host} without serve.token_file: anybody who reaches it can read and send",
            file=sys.stderr,
        )
    quarantine = Quarantine(os.path.join(settings.store.path, "quarantine"))
    config = uvicorn.Config(
        application(store, quarantine, token, local=host == "127.0.0.1"),
        log_level="warning",
        access_log=False,
        timeout_graceful_shutdown=5,
    )
    digester = Digester(store, settings.store.keep)
    server = Server(config, before_stop)
    try:
        with consuming(settings.serve.kafka, store.append, quarantine), announced(settings.store.path, url(link)):
            server.run(sockets=[link])
    finally:
        digester.stop()
        store.close()


def _opened(settings: Settings) -> Store:
    if settings.store.url is None:
        return open_store(settings.store.path)
    # What is refused is kept here all the same.
    files.make_directory(settings.store.path)
    store = open_database(settings.store.url)
    print(f"jobsight uses the {store.report}", flush=True)
    return store


def _token(path: str | None) -> str | None:
    if path is None:
        return None
    token = files.read_at(path, 0, 4096).decode("ascii", "replace").strip()
    if not token:
        raise ListenError(f"serve.token_file: {path} is missing or empty")
    return token
