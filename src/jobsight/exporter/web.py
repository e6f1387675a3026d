"""The exporter's web side: `/metrics`, `/metrics?collect=NAME`, and a landing page. Standard library only."""

import sys
import threading
from collections.abc import Mapping
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from types import MappingProxyType
from typing import TYPE_CHECKING, Any
from urllib.parse import parse_qs, urlsplit

from jobsight.exporter.scrape import Scraper

if TYPE_CHECKING:
    from jobsight.exporter.webconfig import Watched

# Seconds for a client to say the next thing.
PATIENCE = 30.0
# Clients at once, each with a thread: a node is for its jobs. Those beyond are hung up on.
MOST = 32

LANDING = (
    "<!doctype html><title>jobsight exporter</title><h1>jobsight exporter</h1>"
    '<p><a href="/metrics">Metrics</a>; <code>/metrics?collect=memory</code> for one collector.</p>'
)


class Server(ThreadingHTTPServer):
    """One that may speak HTTPS. The handshake is made by the thread that answers: nobody waits for a slow one."""

    secure: Any = None

    def __init__(self, *arguments: Any) -> None:
        self._places = threading.BoundedSemaphore(MOST)
        super().__init__(*arguments)

    def verify_request(self, request: Any, client_address: Any) -> bool:  # noqa: ARG002
        return self._places.acquire(blocking=False)

    def process_request(self, request: Any, client_address: Any) -> None:
        try:
            super().process_request(request, client_address)
        except BaseException:
            # No thread could be had.
            self._places.release()
            raise

    def process_request_thread(self, request: Any, client_address: Any) -> None:
        try:
            super().process_request_thread(request, client_address)
        finally:
            self._places.release()

    def get_request(self) -> tuple[Any, Any]:
        link, address = super().get_request()
        if self.secure is not None:
            link = self.secure.wrap_socket(link, server_side=True, do_handshake_on_connect=False)
        return link, address

    def handle_error(self, request: Any, client_address: Any) -> None:
        """Somebody who speaks no HTTPS, shows no certificate or goes away is no event."""
        if not isinstance(sys.exception(), OSError):
            super().handle_error(request, client_address)


def server(host: str, port: int, scraper: Scraper, watched: "Watched | None" = None) -> ThreadingHTTPServer:
    """A server ready to run; scrapes go one after the other, since they share the collectors."""
    turn = threading.Lock()
    passwords: Any = None
    if watched is not None:
        from jobsight.exporter.password import Passwords

        passwords = Passwords()

    class Handler(BaseHTTPRequestHandler):
        timeout = PATIENCE

        def do_GET(self) -> None:
            place = urlsplit(self.path)
            if not self._welcome():
                self._answer(401, "text/plain; charset=utf-8", "Unauthorized\n", {"WWW-Authenticate": "Basic"})
            elif place.path == "/metrics":
                with turn:
                    text = scraper.scrape(parse_qs(place.query).get("collect", []))
                self._answer(200, "text/plain; version=0.0.4; charset=utf-8", text)
            elif place.path == "/":
                self._answer(200, "text/html; charset=utf-8", LANDING)
            else:
                self._answer(404, "text/plain; charset=utf-8", "not here: see /metrics\n")

        def _welcome(self) -> bool:
            users = dict(watched.config().users) if watched else {}
            return not users or passwords.user(self.headers.get("Authorization", ""), users) is not None

        def _answer(self, status: int, kind: str, text: str, more: Mapping[str, str] = MappingProxyType({})) -> None:
            body = text.encode()
            self.send_response(status)
            for name, value in [*more.items(), *(watched.config().headers if watched else ())]:
                self.send_header(name, value)
            self.send_header("Content-Type", kind)
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, format: str, *args: object) -> None:  # noqa: A002
            """A line for every scrape helps nobody."""

    made = Server((host, port), Handler)
    if watched is not None and watched.secure:
        from jobsight.exporter.certificate import renewing

        made.secure = renewing(watched)
    return made
