"""Identifiers of Lustre's job statistics."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from jobsight.collector import ParseError
from jobsight.drivers.lustreoptions import Options
from jobsight.formats.lustreid import Formats, Identity, decoded, to_bytes, to_text

USUAL = Formats(Options().formats)


@pytest.mark.parametrize(
    ("printed", "raw"),
    [
        (b"11317854:17627127:r01c01", b"11317854:17627127:r01c01"),
        (rb'"11317854\x3A17627127\x3Ar01c01"', b"11317854:17627127:r01c01"),
        (b'"11317854:17627127:r01c01"', b"11317854:17627127:r01c01"),
        (rb'"kworker\x2f86:1.0"', b"kworker/86:1.0"),
        (b'"r\xc3\\xA9sum\xc3\\xA9.1"', "résumé.1".encode()),
        (rb"a\x3Ab", rb"a\x3Ab"),
        (rb'"a\x5Cx3A"', rb"a\x3A"),
        (b" lead", b" lead"),
        (b'"', b'"'),
    ],
)
def test_an_identifier_is_the_same_however_it_is_printed(printed: bytes, raw: bytes) -> None:
    assert decoded(printed) == raw


@given(st.binary(max_size=40))
def test_text_of_any_bytes_leads_back_to_them(raw: bytes) -> None:
    text = to_text(raw)
    assert to_bytes(text) == raw
    assert text.isprintable() or not text
    text.encode()


@given(st.binary(max_size=20), st.binary(max_size=20))
def test_different_bytes_never_have_one_text(one: bytes, other: bytes) -> None:
    assert (to_text(one) == to_text(other)) == (one == other)


def test_text_that_is_none_of_ours_is_refused() -> None:
    with pytest.raises(ParseError, match="backslash"):
        to_bytes(r"a\n")


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("11317854:17627127:r01c01", Identity("11317854", 17627127, "r01c01", None, "compute")),
        (":17627127:r01c01", Identity(None, 17627127, "r01c01", None, "compute")),
        ("17_4:1001:n1", Identity("17_4", 1001, "n1", None, "compute")),
        ("17[4].pbs:1001:n1", Identity("17[4].pbs", 1001, "n1", None, "compute")),
        ("11317854:17627127:r01c01.bullx", Identity("11317854", 17627127, "r01c01.bullx", None, "full")),
        ("wget.11317854", Identity("wget@11317854", 11317854, None, "wget", "login")),
        ("python3.11.1001", Identity("python3.11@1001", 1001, None, "python3.11", "login")),
        ("kworker/86:1.0", Identity("kworker/86:1@0", 0, None, "kworker/86:1", "login")),
        (".0", Identity(None, 0, None, None, "login")),
    ],
)
def test_a_format_gives_its_parts(text: str, said: Identity) -> None:
    assert USUAL.identify(text) == said


@pytest.mark.parametrize(
    "text",
    [
        "wget", "wget.", "11317854", "11317854:", "113178544", "11317854:17627127", "11317854:17627127:",
        ":1317854:17627127:r01c01", "", "SA1TwDkwOzA7,team135", "1:99999999999:n1", "1:4294967296:n1",
    ],
)  # fmt: skip
def test_what_is_torn_is_malformed_and_gives_nothing(text: str) -> None:
    assert USUAL.identify(text) == Identity()


def test_formats_are_tried_in_their_order_and_named_by_the_site() -> None:
    site = Formats({"batch": "%j@%u@%h", "daemon": "%e:%u:%H", "bare": "%j"})
    assert site.identify("4668060@92097@comp0173") == Identity("4668060", 92097, "comp0173", None, "batch")
    assert site.identify("@0@oss4") == Identity(None, 0, "oss4", None, "batch")
    told = site.identify("node_exporter:989:es-2-virt3-co")
    assert told == Identity("node_exporter@989", 989, "es-2-virt3-co", "node_exporter", "daemon")
    assert site.identify("43") == Identity("43", None, None, None, "bare")


def test_newer_codes_are_understood() -> None:
    either = Formats({"either": "%j?%H:%u"})
    assert either.identify("17:5") == Identity("17", 5, None, None, "either")
    assert either.identify("node7:5") == Identity(None, 5, "node7", None, "either")
    short = Formats({"short": "%.4e.%u"})
    assert short.identify("pyth.5") == Identity("pyth@5", 5, None, "pyth", "short")
    assert short.identify("python.5") == Identity()


@pytest.mark.parametrize("text", ["", "job", "%C", "%j:%j", "%", "%j%"])
def test_a_format_that_makes_nothing_is_refused(text: str) -> None:
    with pytest.raises(ParseError, match="format: expected"):
        Formats({"x": text})
