"""What `jobsight doctor` says of what waits to be sent, and what it does not say."""

import os
import time
from pathlib import Path

import pytest

from jobsight.cli.main import main
from jobsight.ship.spool import Spool

ROOT = Path(__file__).parent.parent / "collect" / "load" / "vm-cgroup-v1" / "root"


def test_the_spool_is_told_and_the_proxys_password_is_not(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    spool = Spool(str(tmp_path / "spool" / "http-1"), 10**6, 86400, time.time())
    spool.append(b"whole", time.time() - 120)
    spool.append(b"torn", time.time())
    (file,) = (tmp_path / "spool" / "http-1").glob("*.spool")
    os.truncate(file, file.stat().st_size - 1)
    Spool(str(tmp_path / "spool" / "http-1"), 10**6, 86400, time.time())
    settings = tmp_path / "agent.yaml"
    settings.write_text(
        f"spool: {{path: {tmp_path}/spool}}\n"
        "sinks: [http: {url: 'https://monitor.example/ingest', proxy: 'http://me:secret@proxy.example:1'}]\n"
    )
    main(["doctor", "--settings", str(settings), "--root", str(ROOT)])
    out = capsys.readouterr().out
    assert "spool http-1: messages waiting 1, 13 B, the oldest since" in out
    assert "1 dropped in its life, 1 of them torn" in out
    assert "proxy.example:1" in out
    assert "secret" not in out
