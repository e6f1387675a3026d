"""The web config file of Prometheus' programs (`web-config.yaml`): TLS, passwords and headers of a web server.

The same file serves `jobsight exporter` and `jobsight serve`. What is asked for and cannot be done is refused, never
passed over: somebody relies on it. A file that changes is read again; one that is broken then is said so, and the
last good one stays in force.
"""

import os
import re
import sys
import time
from collections.abc import Callable
from threading import Lock
from typing import Any, NamedTuple

from jobsight.settings import SettingsError

VERSIONS = ("TLS10", "TLS11", "TLS12", "TLS13")
# Whether a client must show a certificate, by the toolkit's names. Without a check it is worth nothing, so asking for
# one and not looking at it is the same as not asking; insisting on one that anybody can make is not offered.
CLIENTS = {
    "": "none", "NoClientCert": "none", "RequestClientCert": "none", "VerifyClientCertIfGiven": "optional",
    "RequireAndVerifyClientCert": "required",
}  # fmt: skip
HEADERS = (
    "Content-Security-Policy", "Strict-Transport-Security", "X-Content-Type-Options", "X-Frame-Options",
    "X-XSS-Protection",
)  # fmt: skip
# The toolkit's names of what OpenSSL calls otherwise. TLS 1.3 has its own, which nobody chooses.
CIPHERS = {
    f"TLS_ECDHE_{key}_WITH_{theirs}": f"ECDHE-{key}-{ours}"
    for key in ("RSA", "ECDSA")
    for theirs, ours in (
        ("AES_128_GCM_SHA256", "AES128-GCM-SHA256"),
        ("AES_256_GCM_SHA384", "AES256-GCM-SHA384"),
        ("CHACHA20_POLY1305", "CHACHA20-POLY1305"),
        ("CHACHA20_POLY1305_SHA256", "CHACHA20-POLY1305"),
    )
}
BCRYPT = re.compile(r"\$2[aby]\$[0-3][0-9]\$[./A-Za-z0-9]{53}")
# Not looked at more often than this.
LOOK = 1.0


class Tls(NamedTuple):
    """How to speak HTTPS."""

    cert_file: str
    key_file: str
    client: str = "none"
    client_ca_file: str | None = None
    minimum: str = "TLS12"
    maximum: str = "TLS13"
    ciphers: tuple[str, ...] = ()


class WebConfig(NamedTuple):
    """What the file says."""

    tls: Tls | None = None
    headers: tuple[tuple[str, str], ...] = ()
    users: tuple[tuple[str, str], ...] = ()
    """Names and bcrypt hashes."""


def parse(given: Any, file: str) -> WebConfig:
    """From plain values, as YAML gives them."""
    given = _mapping(given or {}, file, "the file")
    _known(given, ("tls_server_config", "http_server_config", "basic_auth_users"), file, "")
    web = _mapping(given.get("http_server_config") or {}, file, "http_server_config")
    # We speak HTTP/1.1, which whoever may speak HTTP/2 may speak too.
    _known(web, ("http2", "headers"), file, "http_server_config.")
    headers = _texts(web.get("headers"), file, "http_server_config.headers")
    _known(headers, HEADERS, file, "http_server_config.headers.")
    if any("\n" in text or "\r" in text for text in headers.values()):
        raise SettingsError(f"{file}: http_server_config.headers: a header is one line")
    users = _texts(given.get("basic_auth_users"), file, "basic_auth_users")
    for name, kept in users.items():
        if ":" in name or not BCRYPT.fullmatch(kept):
            # Not the value itself: it may be a password.
            raise SettingsError(f"{file}: basic_auth_users.{name}: expected a name and its password's bcrypt hash")
    tls = given.get("tls_server_config")
    return WebConfig(_tls(tls, file) if tls else None, tuple(headers.items()), tuple(users.items()))


def _tls(given: Any, file: str) -> Tls:
    key = "tls_server_config"
    given = _mapping(given, file, key)
    known = ("cert_file", "key_file", "client_auth_type", "client_ca_file", "min_version", "max_version",
             "cipher_suites", "prefer_server_cipher_suites")  # fmt: skip
    _known(given, known, file, f"{key}.")
    suites = given.get("cipher_suites") or []
    if not isinstance(suites, list) or any(suite not in CIPHERS for suite in suites):
        raise SettingsError(f"{file}: {key}.cipher_suites: known here: {', '.join(CIPHERS)}")
    if given.get("client_auth_type", "") not in CLIENTS:
        raise SettingsError(f"{file}: {key}.client_auth_type: known here: {', '.join(filter(None, CLIENTS))}")
    limits = [given.get(name, usual) for name, usual in (("min_version", "TLS12"), ("max_version", "TLS13"))]
    if any(limit not in VERSIONS for limit in limits) or VERSIONS.index(limits[0]) > VERSIONS.index(limits[1]):
        raise SettingsError(f"{file}: {key}: min_version and max_version are of {', '.join(VERSIONS)}, in this order")
    paths = {
        name: _path(given.get(name), file, f"{key}.{name}") for name in ("cert_file", "key_file", "client_ca_file")
    }
    if not paths["cert_file"] or not paths["key_file"]:
        raise SettingsError(f"{file}: {key} needs cert_file and key_file")
    client = CLIENTS[given.get("client_auth_type", "")]
    if (client == "none") == bool(paths["client_ca_file"]):
        raise SettingsError(f"{file}: {key}: client_ca_file and a client_auth_type that verifies need each other")
    chosen = tuple(CIPHERS[suite] for suite in suites)
    minimum, maximum = limits
    return Tls(paths["cert_file"], paths["key_file"], client, paths["client_ca_file"], minimum, maximum, chosen)


class Watched:
    """The file as it is now."""

    def __init__(
        self, file: str, read: Callable[[str], Any], clock: Callable[[], float] = time.monotonic, look: float = LOOK
    ) -> None:
        """SettingsError if it cannot be used."""
        self._file, self._read, self._clock, self._look = file, read, clock, look
        self._turn = Lock()
        self._marks: tuple[object, ...] = ()
        self._looked = clock()
        self._context: Any = None
        self._config = WebConfig()
        self._load()
        self.secure = self._config.tls is not None

    def config(self) -> WebConfig:
        with self._turn:
            now = self._clock()
            if now >= self._looked + self._look:
                self._looked = now
                if self._seen(self._config) != self._marks:
                    self._try()
            return self._config

    def context(self) -> Any:
        """The `ssl.SSLContext` in force."""
        self.config()
        return self._context

    def _try(self) -> None:
        marks = self._seen(self._config)
        try:
            self._load()
        except SettingsError as error:
            self._marks = marks
            print(f"jobsight: {error}; what was in force before stays", file=sys.stderr, flush=True)

    def _load(self) -> None:
        before = self._seen(None)
        config = parse(self._read(self._file), self._file)
        if self._context is not None and config.tls is None:
            raise SettingsError(f"{self._file}: tls_server_config is gone: that needs a restart")
        if self._context is None and config.tls is not None and self._marks:
            raise SettingsError(f"{self._file}: tls_server_config is new: that needs a restart")
        if self._config.users and not config.users:
            # A file that is being written is empty for a moment: then everybody would be let in.
            raise SettingsError(f"{self._file}: basic_auth_users is gone: that needs a restart")
        if config.users:
            _prove()
        if config.tls is not None:
            from jobsight.exporter.certificate import context

            self._context = context(config.tls, self._file)
        # What changed while it was read is read again.
        self._marks = before + self._seen(config)[len(before) :]
        self._config = config

    def _seen(self, config: WebConfig | None) -> tuple[object, ...]:
        """What tells one state of the files from another."""
        tls = config.tls if config else None
        names = [self._file, *filter(None, (tls.cert_file, tls.key_file, tls.client_ca_file) if tls else ())]
        return tuple(_mark(name) for name in names)


def _mark(name: str) -> object:
    try:
        found = os.stat(name)
    except OSError as error:
        return error.errno
    return (found.st_ino, found.st_size, found.st_mtime_ns)


def _prove() -> None:
    from jobsight.drivers import libcrypt

    try:
        libcrypt.hashed(*libcrypt.PROOF)
    except OSError as error:
        raise SettingsError(f"basic_auth_users: {error}") from None


def _path(given: Any, file: str, key: str) -> Any:
    """Relative ones begin where the file is."""
    if given is None or given == "":
        return None
    if not isinstance(given, str):
        raise SettingsError(f"{file}: {key}: expected a path")
    return os.path.join(os.path.dirname(os.path.abspath(file)), given)


def _mapping(given: Any, file: str, key: str) -> dict[Any, Any]:
    if not isinstance(given, dict):
        raise SettingsError(f"{file}: {key}: expected keys and values")
    return given


def _texts(given: Any, file: str, key: str) -> dict[str, str]:
    found = _mapping(given or {}, file, key)
    if not all(isinstance(name, str) and isinstance(text, str) for name, text in found.items()):
        raise SettingsError(f"{file}: {key}: expected names and texts")
    return found


def _known(given: dict[Any, Any], known: tuple[str, ...], file: str, prefix: str) -> None:
    for key in given:
        if key not in known:
            raise SettingsError(f"{file}: {prefix}{key} is not offered; known here: {', '.join(known)}")
