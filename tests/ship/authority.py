"""An authority of our own and certificates it signs, by the openssl command."""

import os
import shutil
import subprocess
from pathlib import Path
from typing import NamedTuple

import pytest

KEY = ("-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes")


class Pair(NamedTuple):
    """A certificate and its key, and whose word it is."""

    certificate: Path
    key: Path
    authority: Path


def _openssl(*arguments: object) -> None:
    done = subprocess.run(["openssl", *map(str, arguments)], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr


def signed(path: Path, *names: str) -> Pair:
    """For these names; the file holds the whole chain, as servers want it."""
    if shutil.which("openssl") is None:
        sentence = "TLS IS NOT TESTED: THE COMMAND openssl IS NOT THERE"
        if os.environ.get("CI") == "true":
            pytest.fail(sentence)
        pytest.skip(sentence)
    path.mkdir(parents=True, exist_ok=True)
    top, top_key = path / "authority.pem", path / "authority.key"
    if not top.exists():
        _openssl("req", "-x509", *KEY, "-keyout", top_key, "-out", top, "-days", 2, "-subj", "/CN=test authority",
                 "-addext", "basicConstraints=critical,CA:TRUE",
                 "-addext", "keyUsage=critical,keyCertSign")  # fmt: skip
    leaf, request, key = path / f"{names[0]}.pem", path / f"{names[0]}.csr", path / f"{names[0]}.key"
    _openssl("req", *KEY, "-keyout", key, "-out", request, "-subj", f"/CN={names[0]}")
    extra = path / f"{names[0]}.ext"
    extra.write_text("subjectAltName=" + ",".join(f"DNS:{name}" for name in names) + "\n")
    _openssl("x509", "-req", "-in", request, "-CA", top, "-CAkey", top_key, "-CAcreateserial", "-days", 2,
             "-out", leaf, "-extfile", extra)  # fmt: skip
    leaf.write_text(leaf.read_text() + top.read_text())
    return Pair(leaf, key, top)
