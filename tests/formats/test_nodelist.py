import pytest

from jobsight.collector import ParseError
from jobsight.formats import nodelist


@pytest.mark.parametrize(
    ("text", "names"),
    [
        ("n1", ["n1"]),
        ("n[1-3]", ["n1", "n2", "n3"]),
        ("n[1-2,5],login", ["n1", "n2", "n5", "login"]),
        ("n[08-10]", ["n08", "n09", "n10"]),
        ("n[098-101]", ["n098", "n099", "n100", "n101"]),
        ("a[1-2]-x[0-1]", ["a1-x0", "a1-x1", "a2-x0", "a2-x1"]),
        ("r[1-2]n[01-02]c", ["r1n01c", "r1n02c", "r2n01c", "r2n02c"]),
        ("größe[1-2]", ["größe1", "größe2"]),
        ("node-1.example.org", ["node-1.example.org"]),
        ("", []),
    ],
)
def test_list_names_its_nodes(text: str, names: list[str]) -> None:
    assert nodelist.expand(text) == names
    assert nodelist.count(text) == len(names)


def test_list_is_expanded_as_scontrol_does() -> None:
    """Recorded: `scontrol show hostnames 'a[1-3,07-10]-x[0-1]'`."""
    recorded = "a1-x0 a1-x1 a2-x0 a2-x1 a3-x0 a3-x1 a07-x0 a07-x1 a08-x0 a08-x1 a09-x0 a09-x1 a10-x0 a10-x1"
    assert nodelist.expand("a[1-3,07-10]-x[0-1]") == recorded.split()


@pytest.mark.parametrize(
    "text",
    ["n[1-3", "n1]", "n[[1]]", "n[]", "n[1-]", "n[-3]", "n[3-1]", "n[x]", "n[1,,2]", "n1,,n2", ",n1", "n 1", "n[٣]",
     "n[1--3]"],
)  # fmt: skip
def test_what_is_no_list_is_refused_with_what_was_seen(text: str) -> None:
    with pytest.raises(ParseError, match="node list"):
        nodelist.expand(text)


@pytest.mark.parametrize("text", ["a[1-999999999]", "a[0-9][0-9][0-9][0-9][0-9][0-9]", "a[1-60000],b[1-60000]"])
def test_list_of_more_nodes_than_a_cluster_has_is_refused_before_it_takes_memory(text: str) -> None:
    with pytest.raises(ParseError, match="more than 100000"):
        nodelist.expand(text)


def test_nodes_of_an_endless_list_can_be_counted() -> None:
    assert nodelist.count("a[1-999999999]") == 999_999_999


@pytest.mark.parametrize(
    ("names", "text"),
    [
        (["n3", "n1", "n2"], "n[1-3]"),
        (["n9", "n10", "n11"], "n[9-11]"),
        (["n09", "n10", "n11"], "n[09-11]"),
        (["n8", "n08"], "n08,n8"),
        (["n008", "n08", "n8"], "n008,n08,n8"),
        (["n1", "n1"], "n1"),
        (["n0", "n1"], "n[0-1]"),
        (["n00", "n1"], "n00,n1"),
        (["n1", "n3", "login"], "login,n[1,3]"),
        (["r1n1", "r1n2", "r2n1"], "r1n[1-2],r2n1"),
        (["123456789012345678901"], "123456789012345678901"),
        ([], ""),
    ],
)
def test_names_become_ranges(names: list[str], text: str) -> None:
    assert nodelist.compress(names) == text


@pytest.mark.parametrize("name", ["", "a b", "a[1]", "a,b", "a\n"])
def test_what_can_be_no_name_is_not_put_into_a_list(name: str) -> None:
    with pytest.raises(ParseError, match="node list"):
        nodelist.compress([name])
