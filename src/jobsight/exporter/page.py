"""What the exporter answers: metrics in the format that is asked for, a landing page, and refusals in a sentence."""

import threading
import zlib
from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

from jobsight.exporter.request import Request, accepts
from jobsight.exporter.scrape import Scraper
from jobsight.exporter.web import PLAIN, Answer
from jobsight.schema.exposition import escaped, openmetrics, text

if TYPE_CHECKING:
    from jobsight.exporter.webconfig import Watched

TEXT = "text/plain; version=0.0.4; charset=utf-8"
OPENMETRICS = "application/openmetrics-text; version=1.0.0; charset=utf-8"
HTML = "text/html; charset=utf-8"
# zlib's word for a gzip member.
GZIP = 31


class Pages:
    """Answers requests."""

    def __init__(self, scraper: Scraper, path: str, most: int, watched: "Watched | None" = None) -> None:
        self._scraper, self._path, self._most, self._watched = scraper, path, most, watched
        self._places = threading.BoundedSemaphore(most)
        self._passwords: Any = None
        if watched is not None:
            from jobsight.exporter.password import Passwords

            self._passwords = Passwords()

    def answer(self, request: Request) -> Answer:
        if not self._welcome(request):
            return Answer(401, PLAIN, b"Unauthorized\n", (("WWW-Authenticate", "Basic"),))
        if request.method not in ("GET", "HEAD"):
            return Answer(405, PLAIN, b"only GET is answered\n", (("Allow", "GET, HEAD"),))
        if request.path == self._path:
            return self._metrics(request)
        if request.path == "/":
            return Answer(200, HTML, landing(self._path, self._scraper.names()).encode())
        return Answer(404, PLAIN, f"not here: see {self._path}\n".encode())

    def _welcome(self, request: Request) -> bool:
        users = dict(self._watched.config().users) if self._watched else {}
        shown = request.headers.get("authorization", "")
        return not users or self._passwords.user(shown, users) is not None

    def _metrics(self, request: Request) -> Answer:
        chosen = request.values("collect", "collect[]")
        known = self._scraper.names()
        if unknown := [name for name in chosen if name not in known]:
            sentence = f"no collector {unknown[0]!r} is shown here; there are {', '.join(known)}\n"
            return Answer(400, PLAIN, sentence.encode("utf-8", "backslashreplace"))
        if not self._places.acquire(blocking=False):
            sentence = f"{self._most} scrapes are under way already: come again later\n"
            return Answer(503, PLAIN, sentence.encode(), (("Retry-After", "5"),))
        try:
            return formed(request, self._scraper, chosen)
        finally:
            self._places.release()


def formed(request: Request, scraper: Scraper, chosen: list[str]) -> Answer:
    """The metrics as their client wants them."""
    liked = accepts(request.headers.get("accept", ""), "text/plain", "application/openmetrics-text")
    modern = liked == "application/openmetrics-text"
    pieces = (openmetrics if modern else text)(scraper.scrape(chosen))
    packed = accepts(request.headers.get("accept-encoding", ""), "gzip") is not None
    headers: tuple[tuple[str, str], ...] = (("Vary", "Accept, Accept-Encoding"),)
    if packed:
        headers = (*headers, ("Content-Encoding", "gzip"))
    return Answer(200, OPENMETRICS if modern else TEXT, body(pieces, packed=packed), headers)


def body(pieces: Iterable[str], *, packed: bool) -> bytes:
    """Piece by piece: packed, the whole is never in memory."""
    if not packed:
        return b"".join(piece.encode("utf-8", "backslashreplace") for piece in pieces)
    packer = zlib.compressobj(1, zlib.DEFLATED, GZIP)
    parts = [packer.compress(piece.encode("utf-8", "backslashreplace")) for piece in pieces]
    return b"".join([*parts, packer.flush()])


def landing(path: str, names: list[str]) -> str:
    place = escaped(path).replace("<", "&lt;")
    links = ", ".join(f'<a href="{place}?collect={name}">{name}</a>' for name in names)
    return (
        '<!doctype html><html lang="en"><meta charset="utf-8"><title>jobsight exporter</title>'
        f'<h1>jobsight exporter</h1><p><a href="{place}">Metrics</a>; of one collector: {links}.</p></html>\n'
    )
