"""What is made in which order."""

from pathlib import Path

import pytest

from jobsight.analyse.keeper import open_store
from jobsight.analyse.tending import settle
from tests.analyse.energyhistory import HOUR, UNTIL, lines, load


def test_what_a_job_took_is_with_it_at_once(tmp_path: Path) -> None:
    store = open_store(str(tmp_path / "store"))
    load(store, lines())
    settle(store, UNTIL + 2 * HOUR)
    ((took,),) = store.query("SELECT sum(energy_full) FROM energy WHERE job_key <> '' AND grade <> ''")
    assert store.query("SELECT sum(energy) FROM stint") == [(pytest.approx(took),)]
    assert took > 0
    store.close()
