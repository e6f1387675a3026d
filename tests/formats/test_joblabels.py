import pytest
from hypothesis import given
from hypothesis import strategies as st

from jobsight.collector import ParseError
from jobsight.formats import joblabels
from jobsight.formats.joblabels import Labels

FILE = b"""\
scheduler=slurm
number=4711
sluid=s01KVR5WDN3B00
owner=alice
uid=1001
account=physics
name=a = b
nodes=n[1-3,7]
cpus=16(x4)
devices=0,3
restarts=1
"""
ENVIRON = (
    b"PATH=/usr/bin\0SECRET=hush\0SLURM_JOB_ID=8\0SLURM_JOB_NAME=rich job\0SLURM_JOB_ACCOUNT=physics\0"
    b"SLURM_JOB_PARTITION=normal\0SLURM_JOB_NODELIST=vm\0SLURM_JOB_CPUS_PER_NODE=2\0SLURM_JOB_GPUS=0,1\0"
    b"SLURM_CPUS_ON_NODE=1\0_=/usr/bin/sbatch\0"
)


def test_file_says_what_the_prolog_wrote() -> None:
    scheduler, labels, refused = joblabels.of_file(FILE)
    assert (scheduler, refused) == ("slurm", [])
    assert labels == Labels(
        number="4711",
        sluid="s01KVR5WDN3B00",
        owner="alice",
        uid="1001",
        account="physics",
        name="a = b",
        nodes="n[1-3,7]",
        cpus="16(x4)",
        devices="0,3",
        restarts="1",
    )


@pytest.mark.parametrize(
    ("content", "seen"),
    [
        (b"", "key=value, each key once, got ''"),
        (b"scheduler=slurm\nnumber=1\nowner", "got 'owner'"),
        (b"scheduler=slurm\nnumber=1\n\nowner=bob\n", "got ''"),
        (b"scheduler=slurm\nnumber=1\nowner=bob\nowner=root\n", "got 'owner=root'"),
        (b"scheduler=slurm\nnumber=1\nNAME=bob\n", "got 'NAME=bob'"),
        (b"number=1\n", "a scheduler we know and a number"),
        (b"scheduler=cron\nnumber=1\n", "a scheduler we know and a number"),
        (b"scheduler=slurm\nowner=bob\n", "a scheduler we know and a number"),
        (b"scheduler=slurm\nnumber=1\nname=" + b"x" * joblabels.LONGEST_FILE, "less than 65536 bytes"),
    ],
)
def test_file_that_is_no_prologs_is_refused_with_what_was_seen(content: bytes, seen: str) -> None:
    with pytest.raises(ParseError) as raised:
        joblabels.of_file(content)
    assert seen in str(raised.value)


@pytest.mark.parametrize(
    ("line", "column"),
    [
        (b"name=a\x1b[2Jb", "name"),
        (b"name=a\rb", "name"),
        ("name=a\u2028b".encode(), "name"),
        (b"name=" + b"x" * 4097, "name"),
        (b"uid=-1", "uid"),
        (b"uid=" + b"9" * 30, "uid"),
        (b"sluid=8", "sluid"),
        (b"restarts=many", "restarts"),
        ("cpus=٣".encode(), "cpus"),
        (b"cpus=4(x", "cpus"),
    ],
)
def test_value_that_is_not_what_its_name_promises_is_refused_alone(line: bytes, column: str) -> None:
    _, labels, refused = joblabels.of_file(b"scheduler=slurm\nnumber=7\naccount=physics\n" + line + b"\n")
    assert refused == [column]
    assert labels == Labels(number="7", account="physics")


def test_empty_value_says_nothing() -> None:
    assert joblabels.of_file(b"scheduler=slurm\nnumber=7\nname= \n") == ("slurm", Labels(number="7"), [])


def test_environment_of_the_script_says_all() -> None:
    labels, refused = joblabels.of_environ("slurm", ENVIRON, batch=True)
    assert labels == Labels(
        number="8",
        account="physics",
        partition="normal",
        name="rich job",
        nodes="vm",
        cpus="2",
    )
    assert refused == []


def test_environment_of_a_step_is_not_asked_for_the_jobs_name() -> None:
    labels, _ = joblabels.of_environ("slurm", ENVIRON, batch=False)
    assert (labels.name, labels.number) == (None, "8")


def test_environment_is_not_asked_for_what_may_be_left_from_another_job() -> None:
    labels, _ = joblabels.of_environ("slurm", ENVIRON + b"SLURM_RESTART_COUNT=3\0", batch=True)
    assert (labels.devices, labels.restarts) == (None, None)


@pytest.mark.parametrize(
    ("environ", "number"),
    [
        (b"SLURM_JOB_ID=8\0SLURM_JOB_ID=9\0", "8"),
        (b"X=1\nSLURM_JOB_ID=9\0SLURM_JOB_ID=8\0", "8"),
        (b"MY_SLURM_JOB_ID=9\0SLURM_JOB_ID=8\0", "8"),
        (b"X=SLURM_JOB_ID=9\0", None),
        # What was cut off may be the beginning of a longer number.
        (b"SLURM_JOB_ID=8", None),
        (b"", None),
    ],
)
def test_variable_begins_where_the_last_one_ended(environ: bytes, number: str | None) -> None:
    assert joblabels.of_environ("slurm", environ, batch=True)[0].number == number


def test_all_but_the_named_variables_of_an_environment_can_be_left_out() -> None:
    kept = joblabels.named(ENVIRON + b"JOB_ID=1\0")
    assert b"SECRET" not in kept
    assert b"PATH" not in kept
    for scheduler in joblabels.VARIABLES:
        whole = joblabels.of_environ(scheduler, ENVIRON + b"JOB_ID=1\0", batch=True)
        assert joblabels.of_environ(scheduler, kept, batch=True) == whole


def test_the_first_source_wins_and_the_second_fills_gaps() -> None:
    merged = joblabels.merged(Labels(number="8", account="physics"), Labels(account="forged", name="mine"))
    assert merged == Labels(number="8", account="physics", name="mine")


@pytest.mark.parametrize(
    ("text", "cpus"), [("4", 4), ("4(x3)", 4), ("4(x3),2", None), ("4,2", None), (None, None), ("", None)]
)
def test_cpus_of_this_node_are_known_if_all_nodes_have_the_same(text: str | None, cpus: int | None) -> None:
    assert joblabels.cpus_here(text) == cpus


@given(st.data())
def test_damaged_file_gives_values_that_can_be_shown_or_a_parse_error(data: st.DataObject) -> None:
    start = data.draw(st.integers(0, len(FILE)))
    end = data.draw(st.integers(start, min(len(FILE), start + 8)))
    text = FILE[:start] + data.draw(st.binary(max_size=8)) + FILE[end:]
    try:
        scheduler, labels, _ = joblabels.of_file(text)
    except ParseError:
        return
    assert scheduler == "slurm"
    assert labels.number
    assert all(value.isprintable() for value in labels if value is not None)


@given(st.binary(max_size=12), st.integers(0, len(ENVIRON)))
def test_damaged_environment_gives_values_that_can_be_shown(junk: bytes, place: int) -> None:
    labels, _ = joblabels.of_environ("slurm", ENVIRON[:place] + junk + ENVIRON[place:], batch=True)
    assert all(value.isprintable() for value in labels if value is not None)
