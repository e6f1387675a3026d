"""Hours of which what they are made of is gone stay as they are."""

from pathlib import Path

from jobsight.analyse.chronicle import catch_up, make
from jobsight.analyse.keeper import open_store
from tests.analyse.estate import HOUR, START
from tests.analyse.test_utilisation import filled


def test_what_its_nodes_said_being_gone_an_hour_stays_as_it_was_made(tmp_path: Path) -> None:
    store = open_store(str(tmp_path / "store"))
    known = filled(store, 1)
    whole = known.usage().whole
    store.compact(known.now + 40 * 24 * HOUR)
    middle = START // HOUR * HOUR + 20 * HOUR
    store.forget(known.now + HOUR, ["hardware"])
    with store.still():
        make(store, middle, middle + 4 * HOUR, known.now)
    assert known.usage().whole == whole
    # And what was never made is not made of what is left.
    store.forget(known.now + HOUR, ["capacity", "tally"])
    catch_up(store, known.now)
    assert store.query("SELECT count(*) FROM capacity") == [(0,)]
    store.close()
