"""Who jobs are, asked of the processes that are known already."""

from pathlib import Path

import pytest

from jobsight import catalogue
from jobsight.formats.cgrouppath import job_of_process
from jobsight.host import Host
from jobsight.recording import Replay, replay
from jobsight.roster import Roster, Seen

HERE = Path(__file__).parent / "allocation"
MACHINES = sorted(path.parent for path in HERE.glob("*/root"))


def know(host: Host, root: Path) -> None:
    """As if the process collector had run."""
    for file in root.glob("proc/*/cgroup"):
        seen = host.keep(Roster).seen[file.parent.name] = Seen(-1, 0)
        seen.group = job_of_process(file.read_text())


@pytest.mark.parametrize("machine", MACHINES, ids=lambda path: path.name)
def test_processes_that_are_known_tell_what_control_groups_would(machine: Path) -> None:
    collector = catalogue.collector("allocation")
    cold, warm = Replay(str(machine / "root")), Replay(str(machine / "root"))
    know(warm, machine / "root")
    assert warm.keep(Roster).seen
    assert replay(collector, warm).rows == replay(collector, cold).rows


class Counting(Replay):
    """A machine that counts how often environments are read."""

    asked = 0

    def piece(self, path: str, size: int = 4096) -> bytes:
        self.asked += path.endswith("/environ")
        return super().piece(path, size)


def test_environment_is_read_once_a_job_and_silent_jobs_are_asked_less_and_less() -> None:
    root = HERE / "slurm-cgroup-v1" / "root"
    host, collector = Counting(str(root)), catalogue.collector("allocation")
    know(host, root)
    rows = [replay(collector, host).rows for _ in range(20)]
    assert host.asked == 1
    assert rows == [rows[0]] * 20
    silent = Counting(str(root))
    know(silent, root)
    for seen in silent.keep(Roster).seen.values():
        assert seen.group
        # Of a job that none of them says it is of.
        seen.group = seen.group._replace(job="999")
    for _ in range(16):
        replay(collector, silent)
    assert silent.asked == 0, "a process of another job is no witness"
