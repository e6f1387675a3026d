"""The web config file: what it may say, and what happens when it changes."""

import re
from base64 import b64encode
from pathlib import Path
from typing import Any

import pytest

from jobsight.exporter.password import KEPT, NOBODY, Passwords, credentials
from jobsight.exporter.webconfig import BCRYPT, Watched, parse
from jobsight.settings import SettingsError, values
from tests.ship.authority import signed

# Known passwords and what bcrypt makes of them.
HASHES = {"U*U": "$2a$05$CCCCCCCCCCCCCCCCCCCCC.E5YPO9kmyuRGyh0XouQYb4YMJKvyOeW"}
BASIC = "Basic YWRhOlUqVQ=="  # ada:U*U


def read(file: str) -> Any:
    return values(Path(file).read_text(), file)


def test_the_toolkits_own_words_are_understood() -> None:
    text = """
tls_server_config:
  cert_file: server.crt
  key_file: /etc/ssl/server.key
  client_auth_type: RequireAndVerifyClientCert
  client_ca_file: ca.crt
  min_version: TLS13
http_server_config:
  http2: true
  headers: {X-Frame-Options: deny}
basic_auth_users:
  ada: $2a$05$CCCCCCCCCCCCCCCCCCCCC.E5YPO9kmyuRGyh0XouQYb4YMJKvyOeW
"""
    found = parse(values(text, "f"), "/etc/jobsight/web.yaml")
    assert found.tls is not None
    assert found.tls.cert_file == "/etc/jobsight/server.crt"
    assert found.tls.key_file == "/etc/ssl/server.key"
    assert (found.tls.client, found.tls.client_ca_file) == ("required", "/etc/jobsight/ca.crt")
    assert (found.tls.minimum, found.tls.maximum) == ("TLS13", "TLS13")
    assert dict(found.headers) == {"X-Frame-Options": "deny"}
    assert dict(found.users) == {"ada": HASHES["U*U"]}


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({"tls": {}}, "tls is not offered"),
        ({"tls_server_config": {"cert_file": "a"}}, "needs cert_file and key_file"),
        ({"tls_server_config": {"cert_file": "a", "key_file": "b", "client_auth_type": "RequireAnyClientCert"}},
         "client_auth_type"),
        ({"tls_server_config": {"cert_file": "a", "key_file": "b", "client_allowed_sans": ["x"]}}, "not offered"),
        ({"tls_server_config": {"cert_file": "a", "key_file": "b", "client_ca_file": "c"}}, "need each other"),
        ({"tls_server_config": {"cert_file": "a", "key_file": "b", "client_auth_type": "VerifyClientCertIfGiven"}},
         "need each other"),
        ({"tls_server_config": {"cert_file": "a", "key_file": "b", "min_version": "TLS13", "max_version": "TLS12"}},
         "in this order"),
        ({"tls_server_config": {"cert_file": "a", "key_file": "b", "cipher_suites": ["TLS_RSA_WITH_RC4_128_SHA"]}},
         "cipher_suites"),
        ({"http_server_config": {"headers": {"Set-Cookie": "a"}}}, "not offered"),
        ({"http_server_config": {"headers": {"X-Frame-Options": "deny\r\nX: y"}}}, "one line"),
        ({"basic_auth_users": {"ada": "a plain password"}}, "bcrypt"),
        ({"basic_auth_users": ["ada"]}, "keys and values"),
    ],
)  # fmt: skip
def test_what_cannot_be_done_is_refused_and_not_passed_over(given: Any, said: str) -> None:
    with pytest.raises(SettingsError, match=re.escape(said)):
        parse(given, "web.yaml")


def test_a_plain_password_in_the_place_of_a_hash_is_not_repeated() -> None:
    with pytest.raises(SettingsError) as caught:
        parse({"basic_auth_users": {"ada": "sesame"}}, "web.yaml")
    assert "sesame" not in str(caught.value)


def test_a_changed_file_is_in_force_without_a_restart_and_a_broken_one_is_not(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "web.yaml"
    file.write_text("basic_auth_users: {}\n")
    now = [0.0]
    watched = Watched(str(file), read, lambda: now[0])
    assert watched.config().users == ()
    file.write_text(f"basic_auth_users: {{ada: {HASHES['U*U']}}}\n")
    now[0] += 2
    assert dict(watched.config().users) == {"ada": HASHES["U*U"]}
    file.write_text("basic_auth_users: [\n")
    now[0] += 2
    assert dict(watched.config().users) == {"ada": HASHES["U*U"]}
    now[0] += 2
    watched.config()
    assert capsys.readouterr().err.count("what was in force before stays") == 1
    # As it is for a moment while an editor writes it.
    file.write_text("")
    now[0] += 2
    assert dict(watched.config().users) == {"ada": HASHES["U*U"]}
    assert "basic_auth_users is gone: that needs a restart" in capsys.readouterr().err


def test_a_renewed_certificate_is_loaded(tmp_path: Path) -> None:
    pair = signed(tmp_path / "a", "localhost")
    file = tmp_path / "web.yaml"
    file.write_text(f"tls_server_config: {{cert_file: {pair.certificate}, key_file: {pair.key}}}\n")
    now = [0.0]
    watched = Watched(str(file), read, lambda: now[0])
    first = watched.context()
    now[0] += 2
    assert watched.context() is first
    renewed = signed(tmp_path / "b", "localhost")
    pair.key.write_bytes(renewed.key.read_bytes())
    pair.certificate.write_bytes(renewed.certificate.read_bytes())
    now[0] += 2
    assert watched.context() is not first


def test_tls_does_not_go_away_while_the_server_runs(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    pair = signed(tmp_path / "a", "localhost")
    file = tmp_path / "web.yaml"
    file.write_text(f"tls_server_config: {{cert_file: {pair.certificate}, key_file: {pair.key}}}\n")
    now = [0.0]
    watched = Watched(str(file), read, lambda: now[0])
    file.write_text("{}\n")
    now[0] += 2
    assert watched.config().tls is not None
    assert "needs a restart" in capsys.readouterr().err


def test_a_certificate_that_is_not_there_is_a_sentence(tmp_path: Path) -> None:
    file = tmp_path / "web.yaml"
    file.write_text("tls_server_config: {cert_file: nothing.pem, key_file: nothing.key}\n")
    with pytest.raises(SettingsError, match="tls_server_config: No such file"):
        Watched(str(file), read)


def test_the_right_password_is_known_and_others_are_not() -> None:
    users = {"ada": HASHES["U*U"]}
    passwords = Passwords()
    assert passwords.user(BASIC, users) == "ada"
    assert passwords.user("Basic YWRhOlUqVTE=", users) is None  # ada:U*U1
    assert passwords.user("Basic Ym9iOlUqVQ==", users) is None  # bob:U*U
    assert passwords.user("Basic YWRhOlUqVQAx", users) is None  # ada:U*U, then a zero byte: C would not see it
    for header in ("", "Basic", "Basic !", "Bearer x", "Basic YWRh"):
        assert passwords.user(header, users) is None


def test_bcrypt_is_asked_once_for_a_password_and_again_when_the_hash_changes() -> None:
    asked: list[bytes] = []

    def hashed(password: bytes, kept: bytes) -> bytes:
        asked.append(password)
        return kept if password == b"U*U" else b""

    passwords = Passwords(hashed)
    for _ in range(3):
        assert passwords.user(BASIC, {"ada": "one"}) == "ada"
    assert len(asked) == 1
    assert passwords.user(BASIC, {"ada": "two"}) == "ada"
    assert len(asked) == 2


def test_unknown_users_take_as_long_as_known_ones_and_guesses_do_not_drive_out_who_is_right() -> None:
    asked: list[bytes] = []

    def hashed(password: bytes, kept: bytes) -> bytes:
        asked.append(kept)
        return kept if password == b"U*U" and kept != NOBODY.encode() else b""

    passwords = Passwords(hashed)
    assert passwords.user("Basic Ym9iOng=", {"ada": "one"}) is None
    assert asked == [NOBODY.encode()]
    passwords.user(BASIC, {"ada": "one"})
    for number in range(3 * KEPT):
        passwords.user("Basic " + b64encode(f"ada:{number}".encode()).decode(), {"ada": "one"})
    assert len(passwords._wrong) == KEPT
    asked.clear()
    assert passwords.user(BASIC, {"ada": "one"}) == "ada"
    assert asked == []


def test_a_guess_costs_the_same_for_every_unknown_user_and_as_much_as_for_a_known_one() -> None:
    asked: list[bytes] = []

    def hashed(_: bytes, kept: bytes) -> bytes:
        asked.append(kept)
        return b"another"

    passwords, users = Passwords(hashed), {"ada": "$2y$12$" + 53 * "a"}
    # What was learned of one guess must not make the same guess quick for the next name.
    for name in ("carol", "dave", "ada"):
        assert passwords.user("Basic " + b64encode(f"{name}:guess".encode()).decode(), users) is None
    assert [kept[:7] for kept in asked] == 3 * [b"$2y$12$"]
    assert BCRYPT.fullmatch(asked[0].decode())


def test_nobodys_hash_is_one() -> None:
    assert BCRYPT.fullmatch(NOBODY)


def test_a_password_may_have_colons_and_a_name_may_not() -> None:
    assert credentials("basic YTpiOmM=") == ("a", b"b:c")
