"""A server that takes every message and counts the bytes."""

import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, Self


class Receiver:
    def __init__(self) -> None:
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
        self.url = f"http://127.0.0.1:{self._server.server_port}/ingest"

    def __enter__(self) -> Self:
        threading.Thread(target=self._server.serve_forever, daemon=True).start()
        return self

    def __exit__(self, *_: object) -> None:
        self._server.shutdown()
        self._server.server_close()
