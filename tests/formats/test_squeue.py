import json
from typing import Any

import pytest

from jobsight.collector import ParseError
from jobsight.formats import squeue
from jobsight.formats.squeue import Grant

# Shapes of releases, cut to what is read.
OLDER = {
    "job_id": 5,
    "gres_detail": ["gpu:a100:2(IDX:0-1)", "gpu:a100:1(IDX:3)"],
    "job_resources": {
        "nodes": "n[1-2]",
        "allocated_nodes": [
            {"sockets": {"0": {"cores": {"0": "allocated", "1": "allocated", "2": "unassigned"}},
                         "1": {"cores": {"0": "allocated and in use"}}},
             "nodename": "n1", "cpus_used": 0, "memory_used": 0, "memory_allocated": 500},
            {"sockets": {"0": {"cores": {"7": "allocated"}}}, "nodename": "n2", "memory_allocated": 500},
        ],
    },
}  # fmt: skip


def newer(name: str, cores: list[int], memory: int, cpus: int) -> dict[str, Any]:
    return {
        "index": 0, "name": name, "cpus": {"count": cpus, "used": 0}, "memory": {"used": 0, "allocated": memory},
        "sockets": [{"index": 0, "cores": [{"index": core, "status": ["ALLOCATED"]} for core in cores]}],
    }  # fmt: skip


NEWER = {
    "job_id": 6,
    "job_state": ["RUNNING"],
    "gres_detail": [],
    "job_resources": {
        "select_type": ["CORE"],
        "nodes": {"count": 3, "list": "n[1-3]", "allocation": [newer("n1", [0, 1], 900, 4), newer("n2", [4], 500, 2),
                                                               newer("n3", [4], 500, 2)]},
    },
}  # fmt: skip
MIB = 2**20


def test_both_shapes_tell_cores_memory_and_devices_by_node() -> None:
    grants, bad = squeue.grants(json.dumps({"jobs": [OLDER, NEWER]}))
    assert grants == [
        Grant("5", "n1", "0:0-1 1:0", None, 500 * MIB, "gpu:a100:0-1"),
        Grant("5", "n2", "0:7", None, 500 * MIB, "gpu:a100:3"),
        Grant("6", "n1", "0:0-1", 4, 900 * MIB, None),
        Grant("6", "n[2-3]", "0:4", 2, 500 * MIB, None),
    ]
    assert bad == 0


def test_number_that_may_be_unset_is_read() -> None:
    job = NEWER | {"job_id": {"set": True, "infinite": False, "number": 8}}
    assert squeue.grants(json.dumps({"jobs": [job]}))[0][0].job == "8"


@pytest.mark.parametrize(
    "resources", [None, {}, {"nodes": "", "allocated_nodes": None}, {"nodes": {"allocation": []}}]
)
def test_job_that_waits_has_nothing(resources: Any) -> None:
    assert squeue.grants(json.dumps({"jobs": [{"job_id": 1, "job_resources": resources}]})) == ([], 0)


@pytest.mark.parametrize(
    "wrong",
    [{"job_resources": {"allocated_nodes": [5]}}, 5, {"job_resources": {"allocated_nodes": [{"sockets": {"x": {}}}]}},
     {"job_resources": {"allocated_nodes": [{"nodename": "n1", "memory_allocated": -5}]}}],
)  # fmt: skip
def test_job_that_does_not_read_is_counted_and_the_others_go_on(wrong: Any) -> None:
    grants, bad = squeue.grants(json.dumps({"jobs": [wrong, OLDER]}))
    assert (len(grants), bad) == (2, 1)


@pytest.mark.parametrize("text", ["", "squeue: error", "[]", "{}", '{"jobs"'])
def test_what_is_no_json_of_jobs_is_refused(text: str) -> None:
    with pytest.raises(ParseError, match="JSON"):
        squeue.grants(text)


def test_devices_of_several_kinds_are_kept_apart() -> None:
    job = OLDER | {"gres_detail": ["gpu:a100:2(IDX:0,3),nic:1(IDX:0)", "(null)"]}
    grants, _ = squeue.grants(json.dumps({"jobs": [job]}))
    assert [grant.devices for grant in grants] == ["gpu:a100:0,3 nic:0", None]
