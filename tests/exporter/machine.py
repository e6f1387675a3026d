"""A recorded machine with jobs, cards, energy counters and a controller, and a clock that stands still."""

import shutil
from pathlib import Path

from jobsight.exporter.scrape import Scraper, sources
from jobsight.host import Host
from jobsight.schema.exposition import text
from jobsight.serving import Exporter
from jobsight.settings import Settings, from_values

MACHINES = Path(__file__).parent / "machines"


class Still:
    """Every run takes no time."""

    def wall(self) -> float:
        return 1_790_000_000.0

    def steady(self) -> float:
        return 1000.0


def copy(tmp_path: Path, name: str = "slurm-v2") -> Path:
    """One whose files a test may change."""
    return Path(shutil.copytree(MACHINES / name / "root", tmp_path / "root"))


def settings_of(exporter: Exporter) -> Settings:
    return from_values({"node": None}, only=sources(exporter))._replace(exporter=exporter)


def scraped(root: Path, exporter: Exporter, *chosen: str) -> str:
    scraper = Scraper(settings_of(exporter), Host(str(root)), Still())
    try:
        return "".join(text(scraper.scrape(chosen)))
    finally:
        scraper.close()
