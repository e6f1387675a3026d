"""What the exporter answers, whoever asks for what."""

import gzip
import threading
from collections.abc import Iterator, Sequence
from typing import Any

from jobsight.exporter.page import OPENMETRICS, TEXT, Pages
from jobsight.exporter.request import parse
from jobsight.exporter.web import Answer
from jobsight.schema.exposition import Family
from tests.conftest import wait_until


class Scraper:
    """Shows one counter; waits where it is told to."""

    def __init__(self) -> None:
        self.chosen: list[list[str]] = []
        self.gate = threading.Event()
        self.gate.set()

    def names(self) -> list[str]:
        return ["memory", "rapl"]

    def scrape(self, chosen: Sequence[str]) -> Iterator[Family]:
        self.chosen.append(list(chosen))
        self.gate.wait(30)
        yield Family("a_total", "counter", 'Of "a".', ["a_total 1"])
        yield Family("b", "gauge", "Nothing.", [])


def asked(pages: Pages, target: str, *headers: str, method: str = "GET") -> Answer:
    return pages.answer(parse("\r\n".join([f"{method} {target} HTTP/1.1", *headers, "", ""]).encode()))


def made(most: int = 2, path: str = "/metrics") -> tuple[Pages, Any]:
    scraper: Any = Scraper()
    return Pages(scraper, path, most), scraper


def test_the_text_is_in_the_format_that_is_asked_for() -> None:
    pages, _ = made()
    plain = asked(pages, "/metrics")
    assert (plain.status, plain.kind) == (200, TEXT)
    assert plain.body == b'# HELP a_total Of "a".\n# TYPE a_total counter\na_total 1\n'
    other = asked(pages, "/metrics", "Accept: application/openmetrics-text;version=1.0.0,text/plain;q=0.5")
    assert (other.status, other.kind) == (200, OPENMETRICS)
    assert other.body == b'# HELP a Of \\"a\\".\n# TYPE a counter\na_total 1\n# EOF\n'


def test_it_is_packed_for_those_who_can_unpack_it() -> None:
    pages, _ = made()
    packed = asked(pages, "/metrics", "Accept-Encoding: gzip, deflate")
    assert ("Content-Encoding", "gzip") in packed.headers
    assert gzip.decompress(packed.body) == asked(pages, "/metrics", "Accept-Encoding: gzip;q=0").body


def test_collectors_are_chosen_in_either_spelling() -> None:
    pages, scraper = made()
    asked(pages, "/metrics?collect[]=memory&collect=rapl")
    assert scraper.chosen == [["memory", "rapl"]]


def test_an_unknown_collector_is_refused_in_a_sentence_and_nothing_is_read() -> None:
    pages, scraper = made()
    found = asked(pages, "/metrics?collect=memory&collect=nope")
    assert (found.status, scraper.chosen) == (400, [])
    assert found.body == b"no collector 'nope' is shown here; there are memory, rapl\n"


def test_one_scrape_too_many_is_told_to_come_again_and_a_place_is_given_back() -> None:
    pages, scraper = made(most=2)
    scraper.gate.clear()
    busy = [threading.Thread(target=asked, args=(pages, "/metrics")) for _ in range(2)]
    for thread in busy:
        thread.start()
    wait_until(lambda: len(scraper.chosen) == 2)
    found = asked(pages, "/metrics")
    assert (found.status, dict(found.headers)) == (503, {"Retry-After": "5"})
    # Pages that read nothing are answered all the same.
    assert asked(pages, "/").status == 200
    scraper.gate.set()
    for thread in busy:
        thread.join()
    assert asked(pages, "/metrics").status == 200


def test_the_landing_page_leads_to_where_the_metrics_are() -> None:
    pages, _ = made(path="/other")
    assert b'href="/other?collect=memory"' in asked(pages, "/").body
    assert asked(pages, "/other").status == 200
    lost = asked(pages, "/metrics")
    assert (lost.status, lost.body) == (404, b"not here: see /other\n")


def test_nothing_but_reading_is_offered() -> None:
    pages, scraper = made()
    found = asked(pages, "/metrics", method="POST")
    assert (found.status, dict(found.headers), scraper.chosen) == (405, {"Allow": "GET, HEAD"}, [])
