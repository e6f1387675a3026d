"""Whose entries are: jobs that they name, and those that they must be of."""

import pytest

from jobsight.analyse.lustre import STEP
from jobsight.analyse.lustrewhose import NAMES, Life, Line, Whose
from jobsight.serving import Lustre

SPAN = (0.0, 2 * STEP)
LIVES = [
    Life("fox.slurm.11.0", "fox", "11", "ada", "physics", 0.0, 10_000.0, ("n1", "n2"), 1001),
    Life("fox.slurm.12.0", "fox", "12", "bob", "maths", 0.0, 100.0, ("n3",), 1002),
    Life("fox.slurm.13.0", "fox", "13", "bob", "maths", 500.0, 10_000.0, ("n3.site.org",), 1002),
    Life("owl.slurm.11.0", "owl", "11", "eve", "", 0.0, 10_000.0, ("n1",), 1001),
]


def line(entry: str, job: str | None, uid: int | None, host: str | None, target: str = "T") -> Line:
    form = "malformed" if uid is None else "%j:%u:%H"
    return Line("fox", target, entry, job, uid, host, form, 0.0, 2 * STEP)


def told(lines: list[Line], system: Lustre | None = None) -> dict[tuple[str, str], dict[str, str]]:
    """By entry and step."""
    labels = Whose(LIVES, lambda uid: f"u{uid}", system).labels(lines, SPAN)
    found = {(label[2], label[3]): dict(zip(NAMES, label, strict=True)) for label in labels}
    assert len(found) == len(labels), "one label each, else rows would count twice"
    return found


def test_an_entry_that_names_a_job_is_that_jobs() -> None:
    (label,) = told([line("11:1001:n1", "11", 1001, "n1")]).values()
    assert (label["job_key"], label["owner"], label["account"], label["repaired"]) == (
        "fox.slurm.11.0", "ada", "physics", "",
    )  # fmt: skip


def test_a_job_nobody_knows_keeps_its_number_and_its_user() -> None:
    (label,) = told([line("99:1002:n1", "99", 1002, "n1")]).values()
    assert (label["job_key"], label["job"], label["owner"]) == ("", "99", "bob")
    (label,) = told([line("99:4711:n1", "99", 4711, "n1")]).values()
    assert label["owner"] == "u4711"


def test_a_missing_job_is_the_one_that_the_user_had_on_the_node_step_by_step() -> None:
    found = told([line(":1002:n3", None, 1002, "n3")])
    assert found[":1002:n3", "0"]["job_key"] == "fox.slurm.12.0"
    assert found[":1002:n3", "1"]["job_key"] == "fox.slurm.13.0"
    assert {label["repaired"] for step, label in found.items() if step[1]} == {"node"}
    assert found[":1002:n3", ""]["job_key"] == ""


def test_a_missing_job_is_nobodys_where_the_user_had_two_or_none_there() -> None:
    both = [*LIVES, LIVES[0]._replace(key="other", number="14")]
    labels = Whose(both, str).labels([line(":1001:n1", None, 1001, "n1")], SPAN)
    assert {label[6] for label in labels if label[3]} <= {""}
    assert all(label["job_key"] == "" for label in told([line(":1002:n1", None, 1002, "n1")]).values())


@pytest.mark.parametrize("torn", ["11", "11:", "11:1001", "11:1001:", "11:1001:n1.site"])
def test_a_torn_identifier_is_the_one_live_one_it_can_be_of(torn: str) -> None:
    found = told([line(torn, None, None, None), line("11:1001:n1", "11", 1001, "n1")])
    assert (found[torn, ""]["job_key"], found[torn, ""]["repaired"]) == ("fox.slurm.11.0", "torn")


@pytest.mark.parametrize("torn", ["1", "", ":", "7", "11", "11:1001"])
def test_a_torn_identifier_that_may_be_of_several_or_of_none_is_nobodys(torn: str) -> None:
    live = [line(f"{job}:1001:n{job}", job, 1001, f"n{job}") for job in ("110", "11", "12")]
    live.append(line("11:1001:n2", "11", 1001, "n2"))
    found = told([line(torn, None, None, None), *live])
    assert (found[torn, ""]["job_key"], found[torn, ""]["repaired"]) == ("", "")


def test_another_targets_entries_say_nothing_of_a_torn_one() -> None:
    found = told([line("11:1001", None, None, None), line("11:1001:n1", "11", 1001, "n1", target="U")])
    assert found["11:1001", ""]["job_key"] == ""


def test_the_systems_users_are_one() -> None:
    root = line(":0:n1", None, 0, "n1")
    assert {label["owner"] for label in told([root]).values()} == {"(system)"}
    assert {label["owner"] for label in told([root], Lustre(system="keep")).values()} == {"u0"}


def test_a_job_that_is_somebody_elses_is_not_believed() -> None:
    (label,) = told([line("12:1001:n3", "12", 1001, "n3")]).values()
    assert (label["job_key"], label["job"], label["owner"]) == ("", "12", "ada")
    # Where only this machine knows the user, its name must be the owner's; where nobody does, the number is believed.
    nameless = [LIVES[1]._replace(uid=None)]
    for name, key in (("bob", "fox.slurm.12.0"), ("ada", ""), ("1002", "fox.slurm.12.0")):
        ((*_, found, _, _, _),) = Whose(nameless, {1002: name}.__getitem__).labels(
            [line("12:1002:n3", "12", 1002, "n3")], SPAN
        )
        assert found == key


def test_a_number_is_the_user_whom_the_servers_own_cluster_gives_it() -> None:
    stranger = line("99:1001:n9", "99", 1001, "n9")
    assert told([stranger])["99:1001:n9", ""]["owner"] == "ada"
    assert told([stranger._replace(cluster="owl")])["99:1001:n9", ""]["owner"] == "eve"
    assert told([stranger._replace(cluster="disks")])["99:1001:n9", ""]["owner"] == "u1001", "they do not agree"
    agreed = line("99:1002:n9", "99", 1002, "n9")._replace(cluster="disks")
    assert told([agreed])["99:1002:n9", ""]["owner"] == "bob"


@pytest.mark.parametrize("other", ["1", "11:10", "11:1001:n"])
def test_what_ends_within_a_part_is_another_identifier(other: str) -> None:
    found = told([line(other, None, None, None), line("11:1001:n1", "11", 1001, "n1")])
    assert (found[other, ""]["job_key"], found[other, ""]["repaired"]) == ("", "")
