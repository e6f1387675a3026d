"""What becomes of findings over time."""

from typing import Any

from msgspec import structs

from jobsight.analyse.finding import Found
from jobsight.analyse.judge import judge
from jobsight.analyse.standing import merged, plain, state
from jobsight.store.findings import Kept
from tests.analyse.findings.scenes import NOW, scene

DAY = 86400.0


def found(**changes: Any) -> Found:
    (one,) = judge(scene({"jobs": [{"parts": [{"cpu_time": 0.1 * 4 * 3600}]}]}))
    return structs.replace(one, **changes)


def about_user(begin: float, end: float, number: str) -> Found:
    return found(of="user", code="whale", subject="alice", begin=begin, end=end, id=number)


def test_what_is_found_is_new_then_goes_on_then_ends() -> None:
    (first,) = merged([found(going=True)], [], NOW)
    assert (first.first, first.last, first.ended) == (NOW, NOW, None)
    assert state(first, NOW - DAY) == "new"
    (again,) = merged([found(going=True, end=NOW + DAY)], [first], NOW + DAY)
    assert (again.first, again.last) == (NOW, NOW + DAY)
    assert state(again, NOW + 1) == "continuing"
    (gone,) = merged([], [again], NOW + 2 * DAY)
    assert (gone.last, gone.ended) == (NOW + DAY, NOW + 2 * DAY)
    assert state(gone, NOW + 1) == "ended"


def test_what_a_job_that_is_over_did_is_new_in_the_report_that_tells_of_it_first() -> None:
    (row,) = merged([found(going=False)], [], NOW)
    assert row.ended == row.seen
    assert state(row, NOW - DAY) == "new"
    assert state(row, NOW + 1) == "ended"
    # It is found again as long as it is looked at, and that changes nothing.
    (again,) = merged([found(going=False)], [row], NOW + 900)
    assert again._replace(last=row.last) == row


def test_what_is_acknowledged_stays_so_when_it_is_found_again() -> None:
    (row,) = merged([found(going=True)], [], NOW)
    known = row._replace(acknowledged=NOW + 1, acknowledged_by="root", note="agreed")
    (again,) = merged([found(going=True)], [known], NOW + 900)
    assert (again.acknowledged_by, again.note) == ("root", "agreed")
    assert state(again, NOW - DAY) == "acknowledged"
    assert plain(again, NOW)["note"] == "agreed"


def test_a_user_who_goes_on_is_one_finding_and_one_who_begins_anew_another() -> None:
    (row,) = merged([about_user(NOW - DAY, NOW - 3600, "first")], [], NOW)
    (on,) = merged([about_user(NOW - 3000, NOW, "second")], [row], NOW)
    assert (on.id, on.begun, on.seen) == ("first", NOW - DAY, NOW)
    other = merged([about_user(NOW + 3 * DAY, NOW + 4 * DAY, "third")], [on], NOW + 4 * DAY)
    assert {one.id for one in other if one.last == NOW + 4 * DAY} == {"third"}


def test_a_finding_of_the_same_job_has_the_same_number_whenever_it_is_found() -> None:
    assert found().id == found().id
    assert found().id != judge(scene({"jobs": [{"id": "8", "parts": [{"cpu_time": 1.0}]}]}))[0].id


def test_what_is_kept_is_shown_whole() -> None:
    (row,) = merged([found()], [], NOW)
    shown = plain(row, NOW)
    assert isinstance(row, Kept)
    assert shown["sentence"] == "It used 0.1 of 8 cores over 4:00:00."
    assert shown["state"] == "new"
    assert shown["first"] == NOW
