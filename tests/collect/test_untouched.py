"""Memory that is asked for and not touched makes no page fault, and is seen all the same."""

from pathlib import Path

from jobsight.collect.process import Options, process
from jobsight.host import Host

STAT = "77 (a) S 1 77 77 0 -1 4194304 5 0 0 0 0 0 0 0 20 0 1 0 100 {} 10 18446744073709551615 1 1 1\n"


def test_data_moves_with_the_address_space(tmp_path: Path) -> None:
    place = tmp_path / "proc/77"
    place.mkdir(parents=True)
    (tmp_path / "machine.json").write_text('{"node": "n1", "uptime": 5000, "page": 4096}')
    host = Host(str(tmp_path))
    for pages in (300, 300, 900):
        (place / "stat").write_text(STAT.format(pages * 4096))
        (place / "statm").write_text(f"{pages} 10 5 1 0 {pages - 50} 0\n")
        (row,) = process.collector.rows(host, Options())  # type: ignore[attr-defined]
        assert row.memory_data == (pages - 50) * 4096
    host.close()
