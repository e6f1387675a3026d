"""Whose a card is: by allocation, by device files, by processes, in this order."""

from pathlib import Path

import pytest

from jobsight.collect.process import Process
from jobsight.drivers.card import Card, Holder, Reading
from jobsight.formats.cgrouppath import JobGroup
from jobsight.host import Host
from jobsight.ownership import Owner, owners
from jobsight.roster import Roster, Seen
from jobsight.schema.units import Bytes, Count, Seconds

# The library counts them in another order than the device files do.
FIRST = Card("nvidia", "GPU-a", ordinal=0, minor=1)
SECOND = Card("nvidia", "GPU-b", ordinal=1, minor=0)
PART = Card("nvidia", "MIG-c", parent="GPU-b", ordinal=1, minor=0)


def know(host: Host, pid: int, job: str) -> None:
    """As if the process collector had seen it."""
    seen = host.keep(Roster).seen[str(pid)] = Seen(-1, 0)
    seen.group = JobGroup("slurm", job, f"slurm/uid_1001/job_{job}")
    seen.row = Process(
        pid=pid, started=Seconds(1), parent=1, session=pid, process_group=pid, scheduler="slurm", job=job,
        owner="ann", command="python3", state="S", threads=Count(1), cpu_user=Seconds(1), cpu_system=Seconds(0),
        cpu_children=Seconds(0), memory_virtual=Bytes(0),
    )  # fmt: skip


def write(root: Path, path: str, text: str) -> None:
    (root / path).parent.mkdir(parents=True, exist_ok=True)
    (root / path).write_text(text)


def prolog(root: Path, job: str, devices: str) -> None:
    write(root, f"jobs/{job}", f"scheduler=slurm\nnumber={job}\ndevices={devices}\n")


def test_a_card_whose_processes_are_all_of_one_job_is_that_jobs(tmp_path: Path) -> None:
    host = Host(str(tmp_path))
    know(host, 7, "100")
    know(host, 8, "100")
    reading = Reading([FIRST, SECOND], [Holder("GPU-a", 7, "compute"), Holder("GPU-a", 8, "compute")])
    assert owners(host, reading, "/jobs") == {"GPU-a": Owner("slurm", "100", "process")}


def test_a_card_with_processes_of_two_jobs_is_neithers(tmp_path: Path) -> None:
    host = Host(str(tmp_path))
    know(host, 7, "100")
    know(host, 8, "200")
    reading = Reading([FIRST], [Holder("GPU-a", 7, "compute"), Holder("GPU-a", 8, "compute")])
    assert owners(host, reading, "/jobs") == {}


@pytest.mark.parametrize(
    ("devices", "uuid"), [("0", "GPU-b"), ("1", "GPU-a"), ("GPU-a", "GPU-a"), ("MIG-c", "MIG-c")]
)
def test_what_the_prolog_wrote_counts_whoever_uses_the_card(tmp_path: Path, devices: str, uuid: str) -> None:
    host = Host(str(tmp_path))
    know(host, 7, "100")
    prolog(tmp_path, "300", devices)
    found = owners(host, Reading([FIRST, SECOND, PART], [Holder(uuid, 7, "compute")]), "/jobs")
    assert found == {uuid: Owner("slurm", "300", "allocation")}


def test_an_idle_card_is_the_jobs_that_holds_it(tmp_path: Path) -> None:
    prolog(tmp_path, "300", "0,1")
    found = owners(Host(str(tmp_path)), Reading([FIRST, SECOND], []), "/jobs")
    assert found == dict.fromkeys(("GPU-a", "GPU-b"), Owner("slurm", "300", "allocation"))


def test_a_card_that_two_prologs_claim_is_neithers(tmp_path: Path) -> None:
    prolog(tmp_path, "300", "0")
    prolog(tmp_path, "301", "0")
    assert owners(Host(str(tmp_path)), Reading([FIRST, SECOND], []), "/jobs") == {}


def test_device_files_that_a_group_may_open_tell_where_no_prolog_does(tmp_path: Path) -> None:
    host = Host(str(tmp_path))
    know(host, 7, "100")
    know(host, 8, "200")
    place = "sys/fs/cgroup/devices/slurm/uid_1001"
    write(tmp_path, f"{place}/job_100/devices.list", "c 1:3 rwm\nc 195:255 rwm\nc 195:1 rwm\n")
    write(tmp_path, f"{place}/job_200/devices.list", "a *:* rwm\n")
    found = owners(host, Reading([FIRST, SECOND], []), "/jobs")
    assert found == {"GPU-a": Owner("slurm", "100", "devices")}


def test_a_number_that_cards_of_two_makers_have_is_neithers(tmp_path: Path) -> None:
    host = Host(str(tmp_path))
    prolog(tmp_path, "100", "0,1")
    reading = Reading([FIRST, SECOND, Card("habana", "01P4-HL", ordinal=0, minor=0)], [])
    assert owners(host, reading, "/jobs") == {"GPU-a": Owner("slurm", "100", "allocation")}


def test_a_job_that_may_open_a_card_for_computing_has_it_and_not_the_screen(tmp_path: Path) -> None:
    host = Host(str(tmp_path))
    know(host, 7, "100")
    folder = "sys/fs/cgroup/devices/slurm/uid_1001/job_100"
    write(tmp_path, f"{folder}/devices.list", "c 226:128 rwm\nc 226:0 rwm\n")
    reading = Reading([Card("amd", "GPU-d", minor=128), Card("amd", "GPU-e", minor=129)], [])
    assert owners(host, reading, "/jobs") == {"GPU-d": Owner("slurm", "100", "devices")}


@pytest.mark.parametrize(("others", "found"), [([], {"GPU-a": Owner("slurm", "100", "process")}), (["/init"], {})])
def test_where_no_processes_are_collected_their_control_groups_tell(
    tmp_path: Path, others: list[str], found: dict[str, Owner]
) -> None:
    groups = ["/slurm/uid_1001/job_100/step_0", *others]
    for pid, group in enumerate(groups):
        write(tmp_path, f"proc/{pid}/cgroup", f"4:memory:{group}\n")
    # One that has ended meanwhile says nothing.
    holders = [Holder("GPU-a", pid, "compute") for pid in (*range(len(groups)), 99)]
    assert owners(Host(str(tmp_path)), Reading([FIRST], holders), "/jobs") == found


def test_where_no_processes_are_collected_a_job_is_known_by_its_directory(tmp_path: Path) -> None:
    path = "slurm/uid_1001/job_100"
    write(tmp_path, f"sys/fs/cgroup/devices/{path}/devices.list", "c 195:1 rwm\n")
    write(tmp_path, f"sys/fs/cgroup/devices/{path}/step_0/devices.list", "c 195:3 rwm\n")
    found = owners(Host(str(tmp_path)), Reading([FIRST, SECOND], []), "/jobs")
    assert found == {"GPU-a": Owner("slurm", "100", "devices")}
