"""A server that takes every message and counts the bytes, over TLS with a certificate of its own."""

import os
import ssl
import subprocess
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, Self

BUNDLE = "/etc/ssl/certs/ca-certificates.crt"


class Receiver:
    def __init__(self, folder: str, *, secure: bool) -> None:
        self.bytes = 0
        receiver = self

        class Taker(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def do_POST(self) -> None:
                receiver.bytes += len(self.rfile.read(int(self.headers["Content-Length"])))
                self.send_response(204)
                self.end_headers()

            def log_message(self, *_: Any) -> None:
                """Nobody wants to read about every request."""

        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Taker)
        self._server.daemon_threads = True
        self.certificate = self.trusted = ""
        if secure:
            self._secure(folder)
        self.url = f"{'https' if secure else 'http'}://127.0.0.1:{self._server.server_port}/ingest"

    def _secure(self, folder: str) -> None:
        """Makes a certificate, and a file with it among all that a machine trusts, for they take memory too."""
        key, certificate, trusted = (os.path.join(folder, name) for name in ("key.pem", "own.pem", "trusted.pem"))
        self.certificate, self.trusted = certificate, trusted
        command = "openssl req -x509 -newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes -days 2 -subj /CN=bench"
        place = ("-addext", "subjectAltName=IP:127.0.0.1", "-keyout", key, "-out", certificate)
        subprocess.run((*command.split(), *place), check=True, capture_output=True)
        with open(trusted, "wb") as file:
            for path in (certificate, BUNDLE):
                if os.path.exists(path):
                    with open(path, "rb") as part:
                        file.write(part.read())
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(certificate, key)
        self._server.socket = context.wrap_socket(self._server.socket, server_side=True)

    def __enter__(self) -> Self:
        threading.Thread(target=self._server.serve_forever, daemon=True).start()
        return self

    def __exit__(self, *_: object) -> None:
        self._server.shutdown()
        self._server.server_close()
