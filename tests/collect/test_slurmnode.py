import pytest

from jobsight.collect import slurmnode
from jobsight.collector import ParseError

LINE = "NodeName={} CPUAlloc=2 CPUTot=4 RealMemory=1000 AllocMem=500 State={} CfgTRES=cpu=4,mem=1000M AllocTRES="


@pytest.mark.parametrize(
    ("text", "state", "flags"),
    [
        ("IDLE", "IDLE", None),
        ("IDLE+DRAIN", "IDLE", "DRAIN"),
        ("MIXED*", "MIXED", "NOT_RESPONDING"),
        ("idle~", "IDLE", "POWERED_DOWN"),
        ("DOWN+RESERVED+CLOUD*", "DOWN", "CLOUD,NOT_RESPONDING,RESERVED"),
        ("SOMETHING_NEW", "SOMETHING_NEW", None),
    ],
)
def test_state_has_flags(text: str, state: str, flags: str | None) -> None:
    assert slurmnode.states(text) == (state, flags)


def test_nodes_alike_share_a_row_and_what_is_given_is_added_up() -> None:
    nodes, bad = slurmnode.parse("\n".join(LINE.format(name, "MIXED") for name in ("n08", "n09", "n10", "n12")))
    (row,) = slurmnode.grouped(nodes)
    assert (row.nodes, row.node_count, row.cpus, row.cpus_given) == ("n[08-10,12]", 4, 4, 8)
    assert (row.memory, row.memory_given, row.gpus, row.gpus_given) == (1000 * 2**20, 2000 * 2**20, None, None)
    assert bad == 0


@pytest.mark.parametrize(
    ("words", "reason", "by"),
    [
        ("bad dimm [root@1794725654]", "bad dimm", "root"),
        ("ask [ann@example] State=DOWN NodeName=x [root@5]", "ask [ann@example] State=DOWN NodeName=x", "root"),
        ("first line [root@5] second line Comment=none of it", "first line\nsecond line", "root"),
        ("nobody signed", "nobody signed", None),
    ],
)
def test_reason_may_look_like_anything(words: str, reason: str, by: str | None) -> None:
    nodes, bad = slurmnode.parse(f"{LINE.format('n1', 'IDLE+DRAIN')} Reason={words}\n{LINE.format('n2', 'IDLE')}")
    first, second = slurmnode.grouped(nodes)
    assert (first.nodes, first.state, first.flags, first.reason, first.reason_by) == (
        "n1",
        "IDLE",
        "DRAIN",
        reason,
        by,
    )
    assert (second.nodes, second.reason, bad) == ("n2", None, 0)


def test_node_that_does_not_read_is_counted_and_the_others_go_on() -> None:
    nodes, bad = slurmnode.parse(f"{LINE.format('n1', '7')}\n{LINE.format('n2', 'IDLE')}\nNodeName=n3 State=")
    assert ([node.name for node in nodes], bad) == (["n2"], 2)


def test_what_tells_of_no_node_is_refused() -> None:
    with pytest.raises(ParseError, match="NodeName="):
        slurmnode.parse("slurm_load_node error: Unable to contact slurm controller")
    assert slurmnode.parse("") == ([], 0)
