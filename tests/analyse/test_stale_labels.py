"""Labels of a job whose number came back are not those of the next."""

from jobsight.analyse.ledger import Ledger
from tests.analyse.conftest import Cluster


def test_what_was_said_long_ago_is_not_said_of_a_new_job_of_that_number() -> None:
    cluster = Cluster()
    ledger = Ledger(cluster.nothing())
    job = {"scheduler": "slurm", "job": "7"}
    ledger.take(cluster.allocations(100, {"account": "physics"}))
    ledger.take(cluster.processes(100, {**job, "pid": 100, "started": 90.0}))
    ledger.take(cluster.processes(110))
    ledger.take(cluster.processes(900_000, {**job, "pid": 200, "started": 899_999.0}))
    _, jobs = ledger.emptied()
    assert [found.account for found in jobs] == ["physics", ""]
