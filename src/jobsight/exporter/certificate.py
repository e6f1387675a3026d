"""TLS as the web config file asks for it. Loaded only where it does: `ssl` takes 5 MiB."""

import ssl
from typing import Any

from jobsight.exporter.webconfig import Tls, Watched
from jobsight.settings import SettingsError

VERSIONS = {
    "TLS10": ssl.TLSVersion.TLSv1,
    "TLS11": ssl.TLSVersion.TLSv1_1,
    "TLS12": ssl.TLSVersion.TLSv1_2,
    "TLS13": ssl.TLSVersion.TLSv1_3,
}
CLIENTS = {"none": ssl.CERT_NONE, "optional": ssl.CERT_OPTIONAL, "required": ssl.CERT_REQUIRED}


def context(tls: Tls, file: str) -> ssl.SSLContext:
    """SettingsError if the certificate, the key or the authority cannot be had."""
    made = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    made.minimum_version, made.maximum_version = VERSIONS[tls.minimum], VERSIONS[tls.maximum]
    if tls.ciphers:
        made.set_ciphers(":".join(tls.ciphers))
    try:
        made.load_cert_chain(tls.cert_file, tls.key_file)
        if tls.client_ca_file:
            made.load_verify_locations(tls.client_ca_file)
            made.verify_mode = CLIENTS[tls.client]
    except OSError as error:
        raise SettingsError(f"{file}: tls_server_config: {error.strerror or error}") from None
    return made


class Renewing(ssl.SSLContext):
    """Every connection gets what is in force when it comes."""

    watched: Watched

    def wrap_bio(self, *arguments: Any, **named: Any) -> ssl.SSLObject:
        found: ssl.SSLObject = self.watched.context().wrap_bio(*arguments, **named)
        return found

    def wrap_socket(self, *arguments: Any, **named: Any) -> ssl.SSLSocket:
        found: ssl.SSLSocket = self.watched.context().wrap_socket(*arguments, **named)
        return found


def renewing(watched: Watched) -> ssl.SSLContext:
    made = Renewing(ssl.PROTOCOL_TLS_SERVER)
    made.watched = watched
    return made
