"""Whatever users call their jobs and however long their lists of nodes are: every row stays its own."""

from hypothesis import given, settings
from hypothesis import strategies as st

from jobsight.collector import ParseError
from jobsight.formats import nodelist, sacct, slurmtext
from tests.formats.test_slurmtext import SIGN, written

# Anything but the mark, which nobody can know: parts of it, of lines and of other records more often than by chance.
NAMES = st.one_of(
    st.text(),
    st.lists(
        st.sampled_from(["\n", "|", "\x1f", "7", "8.batch", "RUNNING", SIGN[:-1], "<", ">", "JobIDRaw", "\r", " "])
    ).map("".join),
).filter(lambda name: SIGN not in name + SIGN[:-1])

WORDS = st.text(st.sampled_from("ab-_.ø"), min_size=1, max_size=3)
NODES = st.builds(
    lambda head, number, width, tail: f"{head}{number:0{width}d}{tail}",
    WORDS, st.integers(0, 1200), st.integers(0, 5), st.one_of(st.just(""), WORDS),
)  # fmt: skip
SPANS = st.builds(lambda first, more, width: f"{first:0{width}d}-{first + more:0{width}d}",
                  st.integers(0, 200), st.integers(0, 20), st.integers(1, 4))  # fmt: skip
BRACKETS = st.lists(SPANS, min_size=1, max_size=3).map(lambda spans: f"[{','.join(spans)}]")
ELEMENTS = st.lists(st.one_of(WORDS, BRACKETS), min_size=1, max_size=4).map("".join)


@settings(deadline=None)
@given(st.lists(st.tuples(st.integers(1, 10**9), NAMES, NAMES), max_size=30))
def test_names_neither_shift_nor_break_a_row(jobs: list[tuple[int, str, str]]) -> None:
    empty = dict.fromkeys(sacct.COLUMNS, "")
    records = [
        tuple((empty | {"JobIDRaw": str(job), "State": "RUNNING", "JobName": name, "WorkDir": place}).values())
        for job, name, place in jobs
    ]
    found = [
        row
        for block in sacct.jobs(written(sacct.COLUMNS, *records))
        for row in zip(*(block.columns[name] for name in ("job", "name", "work_dir")), strict=True)
    ]
    assert found == [(str(job), name or None, place or None) for job, name, place in jobs]


@settings(deadline=None)
@given(st.lists(st.tuples(st.integers(1, 10**9), NAMES), min_size=2, max_size=20), st.data())
def test_record_that_lost_fields_costs_itself_and_no_other(jobs: list[tuple[int, str]], data: st.DataObject) -> None:
    """As long as no name begins a line that looks like a job's number: then the next may be lost too, but none is
    made up.
    """
    head = ("JobIDRaw", "State", "JobName", "Account")
    records = [(str(job), "RUNNING", name, "physics") for job, name in jobs]
    place = data.draw(st.integers(0, len(records) - 1))
    short = [*records[:place], records[place][:2], *records[place + 1 :]]
    blocks = list(slurmtext.blocks(written(head, *short), "JobIDRaw", "State"))
    found = [row for block in blocks for row in zip(*block.columns.values(), strict=True)]
    assert sum(block.broken for block in blocks) >= 1
    assert set(found) <= set(records)
    if not any(name.startswith("\n") for _, name in jobs):
        assert found == records[:place] + records[place + 1 :]


@settings(deadline=None)
@given(st.lists(NODES, max_size=60))
def test_ranges_name_the_nodes_they_were_made_of(names: list[str]) -> None:
    text = nodelist.compress(names)
    expanded = nodelist.expand(text)
    assert sorted(expanded) == sorted(set(names))
    assert nodelist.count(text) == len(expanded)
    assert nodelist.compress(expanded) == text


@settings(deadline=None)
@given(st.lists(ELEMENTS, min_size=1, max_size=3).map(",".join))
def test_list_and_its_shortest_form_name_the_same_nodes(text: str) -> None:
    try:
        names = nodelist.expand(text, most=20_000)
    except ParseError:
        assert nodelist.count(text) > 20_000
        return
    assert set(nodelist.expand(nodelist.compress(names))) == set(names)
    assert nodelist.count(text) == len(names)


@settings(deadline=None)
@given(st.text())
def test_any_text_is_a_list_of_nodes_or_a_parse_error(text: str) -> None:
    try:
        names = nodelist.expand(text)
    except ParseError:
        return
    assert all(names)


@settings(deadline=None)
@given(st.integers(0, 10**7), st.integers(0, 999))
def test_duration_is_read_as_it_is_written(seconds: int, thousandths: int) -> None:
    days, rest = divmod(seconds, 86400)
    hours, rest = divmod(rest, 3600)
    minutes, second = divmod(rest, 60)
    whole = f"{days}-{hours:02d}:{minutes:02d}:{second:02d}"
    assert slurmtext.duration(whole) == seconds
    assert slurmtext.duration(f"{whole}.{thousandths:03d}") == round(seconds + thousandths / 1000, 3)
