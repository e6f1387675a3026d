"""The web config file with real programs: HTTPS, client certificates and passwords, and changes without a restart."""

import base64
import json
import shutil
import ssl
from collections.abc import Callable
from http.client import HTTPSConnection
from pathlib import Path

import pytest

from jobsight.show.reader import open_reader
from tests.conftest import Program, free_port, wait_until
from tests.ship.authority import Pair, signed

pytestmark = pytest.mark.slow

Start = Callable[..., Program]
# U*U and U*U*
ADA, BOB = (
    "$2a$05$CCCCCCCCCCCCCCCCCCCCC.E5YPO9kmyuRGyh0XouQYb4YMJKvyOeW",
    "$2a$05$CCCCCCCCCCCCCCCCCCCCC.VGOzA784oUp/Z0DY336zx7pLYAy0lwK",
)


def get(port: int, pair: Pair, path: str, password: str = "", client: Pair | None = None) -> tuple[int, str, str]:
    """Status, a header, and the text."""
    trust = ssl.create_default_context(cafile=str(pair.authority))
    if client is not None:
        trust.load_cert_chain(str(client.certificate), str(client.key))
    link = HTTPSConnection("localhost", port, timeout=30, context=trust)
    headers = {"Authorization": "Basic " + base64.b64encode(password.encode()).decode()} if password else {}
    try:
        link.request("GET", path, headers=headers)
        answer = link.getresponse()
        return answer.status, answer.getheader("X-Frame-Options") or "", answer.read().decode()
    finally:
        link.close()


def answers(program: Program, port: int, pair: Pair, path: str, client: Pair | None = None) -> bool:
    assert program.process.poll() is None, program.process.communicate()[0]
    try:
        return get(port, pair, path, client=client)[0] in (200, 401)
    except OSError:
        return False


def write(file: Path, pair: Pair, users: dict[str, str], **more: str) -> None:
    config = {
        "tls_server_config": {"cert_file": str(pair.certificate), "key_file": str(pair.key), **more},
        "http_server_config": {"headers": {"X-Frame-Options": "deny"}},
        "basic_auth_users": users,
    }
    beside = file.with_suffix(".new")
    beside.write_text(json.dumps(config))
    beside.rename(file)


def test_the_exporter_asks_for_passwords_and_learns_new_ones(start: Start, tmp_path: Path) -> None:
    pair, port, file = signed(tmp_path / "tls", "localhost"), free_port(), tmp_path / "web.yaml"
    write(file, pair, {"ada": ADA})
    program = start("exporter", "--listen", f"localhost:{port}", "--web.config.file", str(file))
    wait_until(lambda: answers(program, port, pair, "/metrics"), what="the exporter answers")
    assert get(port, pair, "/metrics")[:2] == (401, "deny")
    assert get(port, pair, "/metrics", "ada:U*U1")[0] == 401
    status, header, text = get(port, pair, "/metrics?collect=memory", "ada:U*U")
    assert (status, header) == (200, "deny")
    assert "memory" in text
    write(file, pair, {"bob": BOB})
    wait_until(lambda: get(port, pair, "/metrics", "ada:U*U")[0] == 401, what="ada is out")
    assert get(port, pair, "/", "bob:U*U*")[0] == 200
    file.write_text("basic_auth_users: [")
    assert get(port, pair, "/", "bob:U*U*")[0] == 200
    code, said = program.stop()
    assert code == 0
    assert "Traceback" not in said


def test_the_exporter_wants_a_certificate_of_its_clients(start: Start, tmp_path: Path) -> None:
    pair, port, file = signed(tmp_path / "tls", "localhost"), free_port(), tmp_path / "web.yaml"
    other = signed(tmp_path / "other", "localhost")
    client = {"client_auth_type": "RequireAndVerifyClientCert", "client_ca_file": str(pair.authority)}
    write(file, pair, {}, min_version="TLS13", **client)
    program = start("exporter", "--listen", f"localhost:{port}", "--web-config-file", str(file))
    wait_until(lambda: answers(program, port, pair, "/metrics", pair), what="the exporter answers")
    with pytest.raises(OSError):  # noqa: PT011
        get(port, pair, "/metrics")
    with pytest.raises(OSError):  # noqa: PT011
        get(port, pair, "/metrics", client=other._replace(authority=pair.authority))
    # Another authority, known from the next connection on.
    write(file, pair, {}, **{**client, "client_ca_file": str(other.authority)})
    wait_until(lambda: answers(program, port, pair, "/metrics", other), what="the other one's client is let in")
    assert not answers(program, port, pair, "/metrics", pair)
    code, said = program.stop()
    assert (code, "Traceback" in said) == (0, False)


def test_the_server_shows_everybody_their_own_by_password(start: Start, tmp_path: Path) -> None:
    pair, port, file = signed(tmp_path / "tls", "localhost"), free_port(), tmp_path / "web.yaml"
    write(file, pair, {"ada": ADA})
    settings = tmp_path / "serve.yaml"
    settings.write_text(
        json.dumps(
            {
                "serve": {"listen": f"127.0.0.1:{port}", "web_config_file": str(file), "access": {"admins": ["bob"]}},
                "store": {"path": str(tmp_path / "store")},
            }
        )
    )
    program = start("serve", "--settings", str(settings))
    wait_until(lambda: answers(program, port, pair, "/api/v1/jobs"), what="the server answers")
    assert get(port, pair, "/api/v1/jobs")[:2] == (401, "deny")
    assert get(port, pair, "/static/page.css")[0] == 401
    assert get(port, pair, "/api/v1/store", "ada:U*U")[0] == 403
    write(file, pair, {"ada": ADA, "bob": BOB})
    wait_until(lambda: get(port, pair, "/api/v1/store", "bob:U*U*")[0] == 200, what="bob is in")
    reader = open_reader(str(tmp_path / "store"))
    # The kernel says who we are: no password is asked.
    assert reader.jobs() == []
    reader.close()
    renewed = signed(tmp_path / "renewed", "localhost")
    shutil.copy(renewed.key, pair.key)
    shutil.copy(renewed.certificate, pair.certificate)
    wait_until(lambda: answers(program, port, renewed, "/api/v1/jobs"), what="the new certificate is shown")
    code, said = program.stop()
    assert (code, "Traceback" in said) == (0, False)


def test_two_ways_to_speak_https_are_one_too_many(start: Start, tmp_path: Path) -> None:
    settings = tmp_path / "serve.yaml"
    settings.write_text(json.dumps({"serve": {"web_config_file": "a", "cert_file": "b", "key_file": "c"}}))
    assert start("serve", "--settings", str(settings)).finish() == (
        2,
        f"jobsight: {settings}: serve: HTTPS is set by cert_file or by web_config_file, not by both\n",
    )


def test_a_file_that_cannot_be_used_is_one_sentence(start: Start, tmp_path: Path) -> None:
    file = tmp_path / "web.yaml"
    file.write_text("basic_auth_users: {ada: sesame}")
    for verb in ("exporter", "serve"):
        code, said = start(verb, "--listen", f"127.0.0.1:{free_port()}", "--web.config.file", str(file)).finish()
        assert code == 2
        assert "bcrypt" in said
        assert "sesame" not in said
        assert len(said.splitlines()) == 1
