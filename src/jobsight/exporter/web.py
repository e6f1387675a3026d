"""The exporter's web side: `/metrics`, `/metrics?collect=NAME`, and a landing page. Standard library only."""

import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from urllib.parse import parse_qs, urlsplit

from jobsight.exporter.scrape import Scraper

LANDING = (
    "<!doctype html><title>jobsight exporter</title><h1>jobsight exporter</h1>"
    '<p><a href="/metrics">Metrics</a>; <code>/metrics?collect=memory</code> for one collector.</p>'
)


def server(host: str, port: int, scraper: Scraper) -> ThreadingHTTPServer:
    """A server ready to run; scrapes go one after the other, since they share the collectors."""
    turn = threading.Lock()

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            place = urlsplit(self.path)
            if place.path == "/metrics":
                with turn:
                    text = scraper.scrape(parse_qs(place.query).get("collect", []))
                self._answer(200, "text/plain; version=0.0.4; charset=utf-8", text)
            elif place.path == "/":
                self._answer(200, "text/html; charset=utf-8", LANDING)
            else:
                self._answer(404, "text/plain; charset=utf-8", "not here: see /metrics\n")

        def _answer(self, status: int, kind: str, text: str) -> None:
            body = text.encode()
            self.send_response(status)
            self.send_header("Content-Type", kind)
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, format: str, *args: object) -> None:  # noqa: A002
            """A line for every scrape helps nobody."""

    return ThreadingHTTPServer((host, port), Handler)
