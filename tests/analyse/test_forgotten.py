"""Rollups of a time whose jobs were dropped for their age."""

from pathlib import Path

from jobsight.analyse.keeper import open_store
from jobsight.analyse.slice import roll
from jobsight.store.plan import DAY
from tests.store.files import MIDNIGHT, lines


def test_shares_made_again_do_not_lose_jobs_that_were_dropped(tmp_path: Path) -> None:
    store = open_store(str(tmp_path / "store"))
    store.append(lines(MIDNIGHT)).result(10)
    store.digest()
    roll(store, MIDNIGHT + DAY)
    before = store.query("SELECT * FROM share ORDER BY ALL")
    assert before
    # While all jobs are known an hour is made again as it was.
    due = [("fox", "", "", MIDNIGHT, "recount")]
    store.mark("due", due)
    roll(store, MIDNIGHT + DAY)
    assert store.query("SELECT * FROM share ORDER BY ALL") == before
    assert store.forget_jobs(MIDNIGHT + DAY) > 0
    store.mark("due", due)
    roll(store, MIDNIGHT + DAY)
    assert store.query("SELECT * FROM share ORDER BY ALL") == before
    assert store.query("SELECT count(*) FROM due") == [(0,)]
    store.close()
