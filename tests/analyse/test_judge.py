"""All findings over a scene: what one says in another's place, contention, sums, and thresholds that are tried."""

from typing import Any

import pytest

from jobsight.analyse.case import Machine, Waits
from jobsight.analyse.judge import backtest, judge
from jobsight.analyse.scene import given_out, last_busy, pairs
from jobsight.analyse.thresholds import changed, thresholds
from jobsight.settings import SettingsError, from_values
from tests.analyse.findings.scenes import scene

OPEN = {"n1": {"scheduled": False, "partitions": []}}


def session(number: str, owner: str, cores: float) -> dict[str, Any]:
    return {
        "id": number, "owner": owner, "scheduler": "session",
        "parts": [{"source": "process", "cpus": 64, "cpu_time": cores * 4 * 3600}],
    }  # fmt: skip


def job(number: str, share: float, **more: Any) -> dict[str, Any]:
    return {"id": number, "parts": [{"cpu_time": share * 8 * 4 * 3600}], **more}


def codes(given: dict[str, Any], limits: Any = None) -> set[str]:
    return {found.code for found in judge(scene(given), limits)}


def test_the_same_job_is_a_hog_on_a_busy_machine_and_none_on_an_idle_one() -> None:
    jobs = [session("7", "alice", 48), session("8", "bob", 1)]
    busy = {"n1": [[-4, 75.0, 0.8], [-3, 75.0, 0.8], [-2, 75.0, 0.8], [-1, 75.0, 0.8]]}
    idle = {"n1": [[-4, 49.0, 0.0], [-3, 49.0, 0.0], [-2, 49.0, 0.0], [-1, 49.0, 0.0]]}
    assert codes({"machines": OPEN, "jobs": jobs, "hours": busy}) == {"hog", "response"}
    assert codes({"machines": OPEN, "jobs": jobs, "hours": idle}) == set()


def test_one_busy_core_on_an_idle_machine_of_sixty_four_is_nothing() -> None:
    hours = {"n1": [[-4, 1.2, 0.0], [-3, 1.2, 0.0], [-2, 1.1, 0.0], [-1, 1.2, 0.0]]}
    assert codes({"machines": OPEN, "jobs": [session("7", "alice", 1.0)], "hours": hours}) == set()


def test_the_same_jobs_are_a_whale_while_others_wait_and_none_while_nobody_does() -> None:
    machines: dict[str, Any] = {f"n{number}": {} for number in range(8)}
    wide = {"parts": [{"node": f"n{number}", "cpus": 64, "cpu_time": 60 * 4 * 3600} for number in range(4)]}
    waiting = {"id": "9", "owner": "bob", "hours": 0.0}
    queued = {"submit": 1e6 - 4 * 3600, "start": None, "ended": None, "elapsed": None, "state": "PENDING"}
    given = {"machines": machines, "jobs": [wide]}
    assert codes(given) == set()
    assert codes(given | {"waiting": [waiting | {"batch": queued}]}) == {"hog", "whale"}
    for reason, told in (("Resources", True), ("QOSMaxCpuPerUserLimit", False), ("JobHeldUser", False)):
        held = waiting | {"batch": queued | {"reason": reason}}
        assert ("whale" in codes(given | {"waiting": [held]})) is told, reason


def test_a_job_that_hangs_is_not_told_to_use_its_cores() -> None:
    lazy = job("7", 0.3, batch={"state": "TIMEOUT"})
    assert codes({"jobs": [lazy]}) == {"idle_cores", "short_limit"}
    assert codes({"jobs": [lazy | {"busy_until": -3.0, "sliced_until": 0.0}]}) == {"hung"}


def test_short_jobs_matter_in_sum_and_not_one_by_one() -> None:
    tiny = [
        {"id": str(number), "name": "tiny", "hours": 5 / 60, "parts": [{"cpus": 8, "cpu_time": 1.0}]}
        for number in range(100)
    ]
    assert codes({"jobs": tiny[:50]}) == set()
    assert codes({"jobs": tiny}) == {"vampire"}


def test_the_worst_comes_first() -> None:
    found = judge(scene({"jobs": [job("7", 0.4), job("8", 0.1)]}))
    assert [one.number for one in found] == ["8", "7"]


def test_who_waited_before_the_time_looked_at_is_not_known_rather_than_nobody() -> None:
    waits = Waits([(90.0, 100.0, "bob")], since=80.0)
    assert waits.share(0.0, 100.0) == 0.5
    assert waits.share(0.0, 70.0) == 0.0


def test_a_job_of_whose_cards_nothing_is_known_is_not_said_to_hang() -> None:
    lazy = job("7", 0.3, busy_until=-3.0, sliced_until=0.0)
    assert "hung" in codes({"jobs": [lazy]})
    assert "hung" not in codes({"jobs": [lazy | {"batch": {"gpus": 2}}]})


def test_a_user_told_of_from_another_time_on_is_neither_added_nor_gone() -> None:
    tiny = [
        {"id": str(number), "name": "tiny", "hours": (5 + number / 100) / 60, "parts": [{"cpus": 8, "cpu_time": 1.0}]}
        for number in range(200)
    ]
    given: dict[str, Any] = {}
    test = backtest(scene({"jobs": tiny}), thresholds(given), thresholds(changed(given, ["vampire.short=6m"])))
    assert [len(some) for some in (test.before, test.after)] == [1, 1]
    assert test.before[0].begin != test.after[0].begin
    assert (test.added, test.gone) == ([], [])


def test_what_is_no_table_is_refused_with_a_sentence_while_trying_too() -> None:
    for own in (3, ["share"]):
        with pytest.raises(SettingsError, match=r"findings\.idle_cores: expected"):
            thresholds(changed({"idle_cores": own}, ["idle_cores.share=0.3"]))


@pytest.mark.parametrize("tried", [["idle_cores.share=0.3"], ["idle_cores.share=0.9"], ["hung.enabled=false"]])
def test_a_back_test_counts_what_is_then_found(tried: list[str]) -> None:
    given: dict[str, Any] = {"mouse": False}
    hanging = job("99", 0.2, busy_until=-3.0, sliced_until=0.0)
    jobs = [job(str(n), n / 20, owner=f"user{n % 3}") for n in range(20)] + [hanging]
    seen = scene({"jobs": jobs})
    test = backtest(seen, thresholds(given), thresholds(changed(given, tried)))
    settings = from_values({"findings": changed(given, tried)})
    then = judge(seen, thresholds(settings.findings))
    touched = {one.code for one in [*test.before, *test.after]}
    told = [one for one in then if one.code in touched]
    assert test.counts()["findings_after"] == len(told)
    assert test.counts()["users_after"] == len({one.owner for one in told})
    assert {one.id for one in test.after} == {one.id for one in told}
    now = {one.id for one in judge(seen, thresholds(given)) if one.code in touched}
    assert {one.id for one in test.added} == {one.id for one in told} - now
    assert {one.id for one in test.gone} == now - {one.id for one in told}
    assert test.added or test.gone


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({"idle_core": {}}, "unknown key findings.idle_core; known here: "),
        (
            {"idle_cores": {"part": 0.5}},
            "unknown key findings.idle_cores.part; known here: enabled, share, cpus, ",
        ),
        ({"idle_cores": {"share": "half"}}, "findings.idle_cores.share: expected a number, got 'half'"),
        ({"hung": {"idle": "soon"}}, "findings.hung.idle: "),
        ({"idle_cores": 3}, "findings.idle_cores: expected keys and values, got 3"),
    ],
)
def test_settings_that_cannot_be_are_refused_with_a_sentence(given: dict[str, Any], said: str) -> None:
    with pytest.raises(SettingsError) as refused:
        thresholds(given, "site.yaml")
    assert said in str(refused.value)
    assert str(refused.value).startswith("site.yaml: ")


@pytest.mark.parametrize("tried", ["idle_cores=0.3", "share", "idle_cores.=1", "idle_cores.share=[", ""])
def test_a_threshold_to_try_that_nobody_can_read_is_refused(tried: str) -> None:
    with pytest.raises(SettingsError, match=r"such as idle_cores\.share=0\.3"):
        changed({}, [tried])


def test_settings_take_whole_numbers_durations_and_false() -> None:
    found = thresholds({"idle_cores": {"share": 1, "least": "2h"}, "mouse": False, "hog": {"nodes": 12}})
    assert found["idle_cores"].share == 1.0
    assert found["idle_cores"].least == 7200
    assert not found["mouse"].enabled
    assert found["hog"].nodes == 12


def test_waits_that_overlap_are_counted_once_and_ones_own_not() -> None:
    waits = Waits([(0.0, 10.0, "bob"), (5.0, 20.0, "carol"), (40.0, 50.0, "alice")])
    assert waits.share(0.0, 40.0) == pytest.approx(0.5)
    assert waits.share(0.0, 100.0) == pytest.approx(0.3)
    assert waits.share(0.0, 100.0, but="alice") == pytest.approx(0.2)
    assert waits.share(15.0, 25.0, but="carol") == 0.0
    assert waits.share(5.0, 5.0) == 0.0


def test_a_node_with_batch_jobs_is_a_schedulers_even_if_that_tells_of_no_nodes() -> None:
    (case,) = scene({"jobs": [{}]}).cases
    bare = {("fox", "n1"): Machine(64), ("fox", "n2"): Machine(64)}
    found = given_out(bare, [case.figures])
    assert found["fox", "n1"] == Machine(64, partitions=("normal",), scheduled=True)
    assert found["fox", "n2"] == Machine(64)


def test_a_job_that_did_nothing_in_the_time_looked_at_did_nothing_since_its_beginning() -> None:
    (case,) = scene({"jobs": [{}]}).cases
    job, since = case.figures, case.figures.started
    key = (job.key, job.source)
    assert last_busy(job, {key: (since + 900, since + 1800)}, since) == (since + 900, since + 1800)
    assert last_busy(job, {key: (None, since + 1800)}, since - 60) == (since, since + 1800)
    assert last_busy(job, {key: (None, since + 1800)}, since + 600) == (since + 600, since + 1800)
    # Where nobody counted nothing is known.
    assert last_busy(job, {key: (None, None)}, since) == (None, None)
    assert last_busy(job, {}, since) == (None, None)


def test_hyper_threads_are_paired_as_the_kernel_numbers_them() -> None:
    # Four cores of two threads: on the first both are busy, on the second one is, on the last two none.
    busy = dict(enumerate([0.9, 0.9, 0.0, 0.0, 0.9, 0.0, 0.05, 0.0]))
    assert pairs(busy, 2) == (1, 2, 4)
    assert pairs(busy, 1) is None
    # A CPU of which nothing is known makes the numbers say nothing.
    assert pairs({cpu: part for cpu, part in busy.items() if cpu != 3}, 2) is None
