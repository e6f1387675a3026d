"""Whose a job and a card is, by files, by environments and by what the collectors say."""

from pathlib import Path
from typing import Any

import pytest

from jobsight.collect.allocation import Allocation
from jobsight.collect.cgroup import Cgroup
from jobsight.collect.gpu import Gpu
from jobsight.collect.memory import Memory
from jobsight.collector import ParseError
from jobsight.compat.batchmetrics import Owner
from jobsight.compat.batchmetricscards import devices_of, holders
from jobsight.compat.batchmetricsjobs import groups, owners, properties
from jobsight.host import Host
from jobsight.schema.units import Bytes
from jobsight.serving import Batchjob

MEMORY = Memory(total=Bytes(1000), available=Bytes(1), free=Bytes(1), swap_total=Bytes(50))
TWO = {"7": Owner("7", "ada"), "8": Owner("8", "bob")}


def write(root: Path, path: str, content: str) -> None:
    (root / path).parent.mkdir(parents=True, exist_ok=True)
    (root / path).write_text(content)


def card(number: int, **values: Any) -> Gpu:
    return Gpu(uuid=f"GPU-{number}", vendor="nvidia", ordinal=9 - number, minor=number, **values)


def row(job: str, **values: Any) -> Cgroup:
    path = f"system.slice/slurmstepd.scope/job_{job}"
    return Cgroup(scheduler="slurm", job=job, path=path, **values)


def held(root: Path, *cards: Gpu, jobs: Any = TWO) -> dict[str, str]:
    found = holders(Host(str(root)), "/run/gpujobmap", cards, jobs)
    return {one.uuid: owner.number for one, owner in found}


def test_the_prologs_file_comes_before_what_the_collector_says(tmp_path: Path) -> None:
    write(tmp_path, "run/slurmjobprops/7", "ada physics n[1-2] /home/ada\n")
    write(tmp_path, "run/slurmjobprops/8", "half a\n")
    rows = [
        Allocation(scheduler="slurm", job=job, number=job, owner="eve", account="a", nodes="n1", source="environ")
        for job in ("7", "8")
    ]
    found = owners(Host(str(tmp_path)), "/run/slurmjobprops", ["7", "8", "9"], rows)
    assert found == {
        "7": Owner("7", "ada", "physics", "n[1-2]"), "8": Owner("8", "eve", "a", "n1"), "9": Owner("9"),
    }  # fmt: skip


def test_a_group_that_is_named_otherwise_is_known_by_its_number(tmp_path: Path) -> None:
    write(tmp_path, "run/props/7", "ada physics n1")
    known = Allocation(scheduler="slurm", job="s123456789ABCD", number="7", source="prolog")
    found = owners(Host(str(tmp_path)), "/run/props", [known.job], [known])
    assert found == {known.job: Owner("7", "ada", "physics", "n1")}


@pytest.mark.parametrize("content", ["", "ada", "ada physics", "ada \x1b[2J n1"])
def test_properties_that_are_no_prologs_are_refused(content: str) -> None:
    with pytest.raises(ParseError, match="job properties"):
        properties(content)


def test_files_named_by_number_or_uuid_say_whose_a_card_is(tmp_path: Path) -> None:
    write(tmp_path, "run/gpujobmap/0", "7\n")
    write(tmp_path, "run/gpujobmap/GPU-1", "8\n")
    write(tmp_path, "run/gpujobmap/2", "99\n")
    # By the number of the device file, not by the library's.
    assert held(tmp_path, card(0), card(1), card(2)) == {"GPU-0": "7", "GPU-1": "8"}


def test_two_files_that_contradict_each_other_leave_a_card_to_nobody(tmp_path: Path) -> None:
    write(tmp_path, "run/gpujobmap/0", "7\n")
    write(tmp_path, "run/gpujobmap/GPU-0", "8\n")
    assert held(tmp_path, card(0, scheduler="slurm", job="7")) == {}


def test_without_files_the_collectors_word_counts(tmp_path: Path) -> None:
    cards = (card(0, scheduler="slurm", job="8"), card(1, scheduler="docker", job="8"))
    assert held(tmp_path, *cards) == {"GPU-0": "8"}


def environment(root: Path, job: str, pid: int, text: str) -> None:
    write(root, "sys/fs/cgroup/cgroup.controllers", "cpu\n")
    path = f"system.slice/slurmstepd.scope/job_{job}"
    write(root, f"sys/fs/cgroup/{path}/cgroup.procs", f"{pid}\n")
    write(root, f"proc/{pid}/cgroup", f"0::/{path}/step_batch/user/task_0\n")
    write(root, f"proc/{pid}/environ", text)


def test_an_environment_counts_for_a_card_nobody_else_speaks_for(tmp_path: Path) -> None:
    environment(tmp_path, "7", 70, "SLURM_STEP_GPUS=1\0SLURM_JOB_GPUS=0,1\0SLURM_JOB_ID=7\0")
    # A job without cards that was submitted from one that had some.
    environment(tmp_path, "8", 80, "SLURM_JOB_GPUS=1\0SLURM_JOB_ID=8\0")
    assert held(tmp_path, card(0), card(1)) == {"GPU-0": "7"}
    assert held(tmp_path, card(0), card(1, scheduler="slurm", job="7")) == {"GPU-1": "7"}


def test_an_environment_of_another_job_says_nothing() -> None:
    assert devices_of(b"SLURM_JOB_ID=70\0SLURM_JOB_GPUS=0\0", "7") == ()
    assert devices_of(b"XSLURM_JOB_ID=7\0SLURM_JOB_GPUS=0\0", "7") == ()
    assert devices_of(b"SLURM_JOB_ID=7\0SLURM_JOB_GPUS=0,GPU-1\0", "7") == ("0", "GPU-1")
    # Cut off.
    assert devices_of(b"SLURM_JOB_ID=7\0SLURM_JOB_GPUS=0", "7") == ()


def test_a_silent_environment_is_asked_ever_more_rarely(tmp_path: Path) -> None:
    asked = []

    class Watching(Host):
        def piece(self, path: str, size: int = 4096) -> bytes:
            asked.append(path)
            return super().piece(path, size)

    environment(tmp_path, "7", 70, "SLURM_JOB_ID=7\0")
    host = Watching(str(tmp_path))
    for _ in range(64):
        holders(host, "", [card(0)], {"7": TWO["7"]})
    assert sum(path.endswith("environ") for path in asked) == 7


def test_v1_counts_swap_with_memory_and_no_limit_is_all_there_is(tmp_path: Path) -> None:
    path = "slurm/uid_1/job_7"
    place = f"sys/fs/cgroup/memory/{path}/memory.memsw"
    write(tmp_path, f"{place}.usage_in_bytes", "10\n")
    write(tmp_path, f"{place}.limit_in_bytes", "9223372036854771712\n")
    write(tmp_path, f"{place}.failcnt", "3\n")
    one = Cgroup(scheduler="slurm", job="7", path=path, memory_used=Bytes(5), limit_hits=4)  # type: ignore[arg-type]
    (found,) = groups(Host(str(tmp_path)), Batchjob(), [one], TWO, MEMORY)
    assert found.beside._asdict() == {
        "memory_total": 1000, "failures": 4, "cpu_full": None, "swap_used": 10, "swap_limit": 1050,
        "swap_failures": 3,
    }  # fmt: skip


def test_v2_tells_of_running_out_and_of_waiting(tmp_path: Path) -> None:
    write(tmp_path, "sys/fs/cgroup/cgroup.controllers", "cpu\n")
    place = f"sys/fs/cgroup/{row('7').path}"
    write(tmp_path, f"{place}/memory.events", "low 0\nhigh 0\nmax 5\noom 2\noom_kill 1\n")
    write(tmp_path, f"{place}/memory.swap.max", "max\n")
    write(tmp_path, f"{place}/cpu.pressure", "some avg10=0 total=9\nfull avg10=0.00 total=2500000\n")
    rows = [row("7", memory_used=Bytes(5), memory_limit=Bytes(80), swap=Bytes(6))]
    (found,) = groups(Host(str(tmp_path)), Batchjob(), rows, TWO, MEMORY)
    assert found.beside._asdict() == {
        "memory_total": 80, "failures": 2, "cpu_full": 2.5, "swap_used": 6, "swap_limit": 50, "swap_failures": None,
    }  # fmt: skip
