"""Every acknowledged message is there once, whatever is killed."""

import json
import threading
import time
from collections.abc import Callable
from http.client import HTTPException
from itertools import pairwise
from pathlib import Path
from typing import Any
from urllib.error import HTTPError
from urllib.request import Request, urlopen

import pytest

from jobsight.analyse.keeper import open_store
from jobsight.schema.wire import compress
from tests.conftest import Program, free_port, wait_until
from tests.store.contract import BOOT, load_line, process_line

pytestmark = pytest.mark.slow

Serve = Callable[..., tuple[Program, str]]


def post(url: str, body: bytes, **headers: str) -> dict[str, Any]:
    request = Request(f"{url}/ingest", body, {"Content-Type": "application/x-ndjson", **headers})
    with urlopen(request, timeout=30) as answer:
        found: dict[str, Any] = json.load(answer)
    return found


def get(url: str) -> Any:
    with urlopen(url, timeout=30) as answer:
        return json.load(answer)


class Sender(threading.Thread):
    """Posts numbered messages as fast as it can and remembers which were acknowledged."""

    def __init__(self, url: str, node: str) -> None:
        super().__init__()
        self.url, self.node = url, node
        self.acknowledged: set[float] = set()
        self.stopping = False

    def run(self) -> None:
        number = 0
        while not self.stopping:
            times = [BOOT + 100 + number + i / 10 for i in range(10)]
            lines = [process_line(t, node=self.node) for t in times]
            try:
                post(self.url, b"".join(compress(line + b"\n") for line in lines), **{"Content-Encoding": "gzip"})
            except (OSError, HTTPException):  # HTTPException: killed in the middle of its answer
                time.sleep(0.05)
                continue  # not acknowledged: the same again, as an agent would
            self.acknowledged |= set(times)
            number += 1


def test_a_server_that_was_away_gets_everything_afterwards_in_order(
    serve: Serve, start: Callable[..., Program], tmp_path: Path
) -> None:
    port = free_port()
    program, url = serve(port)
    agent = start("agent", "--url", f"{url}/ingest", "--every", "0.5")

    def stored() -> list[float]:
        program.stop()
        store = open_store(str(tmp_path / "store"))
        store.digest()
        found = [row[0] for row in store.query("SELECT time FROM main.run WHERE collector = 'load' ORDER BY rowid")]
        store.close()
        return found

    wait_until(lambda: get(f"{url}/api/nodes"), 60, "the first messages are in")
    before = stored()
    assert before
    time.sleep(5)
    program, _ = serve(port)
    back = time.time()
    # Messages come in order, so one made after the server came back means that all before it are in.
    wait_until(lambda: any(node["seen"] > back for node in get(f"{url}/api/nodes")), 60, "the spool is sent")
    code, output = agent.stop()
    assert code == 0, output
    times = stored()
    assert times == sorted(times), "messages came out of order"
    assert times[: len(before)] == before
    gaps = [b - a for a, b in pairwise(times)]
    assert len(times) >= 12
    assert max(gaps) < 3, "a stretch of samples is missing"


def test_bad_messages_are_refused_with_reasons_and_their_neighbours_are_stored(serve: Serve, tmp_path: Path) -> None:
    program, url = serve()
    good = load_line(BOOT + 1)
    bodies = [
        b"not json at all",
        good.replace(b'"load1": [0.5]', b'"load1": ["high"]'),
        good.replace(b'"load1": [0.5]', b'"load1": [0.5, 0.6]'),
        good.replace(b'"collector": "load"', b'"collector": "none"'),
        b'{"schema": 1, "rows": "' + b"x" * 200_000_000 + b'"}',
    ]
    report = post(url, b"\n".join([good, *bodies, load_line(BOOT + 2)]))
    assert (report["accepted"], report["refused"]) == (2, 5)
    paths = [reason["path"] for reason in report["reasons"]]
    assert paths == ["$", "$.rows.load1[0]", "$.rows.load5", "$.collector", "$"]
    assert "200000025 bytes, more than" in report["reasons"][4]["reason"]
    (day,) = (tmp_path / "store" / "quarantine").iterdir()
    assert len(day.read_text().splitlines()) == 5
    for body, headers, code in [
        (b"no gzip", {"Content-Encoding": "gzip"}, 400),
        (b"x", {"Content-Encoding": "br"}, 415),
        (b"x", {"Content-Type": "text/plain"}, 415),
        (b"{}\n" * 20_000, {}, 400),
    ]:
        with pytest.raises(HTTPError) as caught:
            post(url, body, **headers)
        assert caught.value.code == code
        assert "error" in json.load(caught.value)
    assert post(url, b"") == {"accepted": 0, "refused": 0, "reasons": []}
    program.stop()
    store = open_store(str(tmp_path / "store"))
    store.digest()
    assert store.query("SELECT time FROM load ORDER BY time") == [(BOOT + 1,), (BOOT + 2,)]
    store.close()
