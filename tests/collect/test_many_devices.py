"""A control group on a machine with hundreds of disks: io.stat is longer than one piece."""

from pathlib import Path

from jobsight.collect.cgroup import cgroup
from jobsight.host import Host

LINE = "8:{} rbytes=1000000000 wbytes=2000000000 rios=1000000 wios=1000000 dbytes=0 dios=0\n"


def test_every_device_is_in_the_sum(tmp_path: Path) -> None:
    mount = tmp_path / "sys/fs/cgroup"
    group = mount / "system.slice/x.service"
    group.mkdir(parents=True)
    (mount / "cgroup.controllers").write_text("cpu io\n")
    (group / "cpu.stat").write_text("usage_usec 1\n")
    (group / "io.stat").write_text("".join(LINE.format(number) for number in range(300)))
    (row,) = cgroup.collector.rows(Host(str(tmp_path)))  # type: ignore[attr-defined]
    assert (row.read, row.written, row.writes) == (300 * 10**9, 600 * 10**9, 300 * 10**6)
