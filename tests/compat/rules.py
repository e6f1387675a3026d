"""What a Sonar document must look like: the tables of its format, read as rules.

R is a key that is always there, O one that is left out when it is zero or empty, W one that may be zero and is
written all the same.
"""

import re
from typing import Any

STAMP = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d[+-]\d\d:\d\d")


def unsigned(value: Any) -> None:
    assert type(value) is int, f"{value!r} is no whole number"
    assert 0 <= value < 2**53


def narrow(value: Any) -> None:
    unsigned(value)
    assert value < 2**32


def positive(value: Any) -> None:
    unsigned(value)
    assert value > 0


def real(value: Any) -> None:
    assert type(value) in (int, float)
    assert type(value) is int or value != int(value), f"{value!r} has a fraction it does not need"
    assert 0 <= value < 2**63


def text(value: Any) -> None:
    assert type(value) is str
    assert not re.search(r"[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f]", value)


def true(value: Any) -> None:
    assert value is True


def stamp(value: Any) -> None:
    assert STAMP.fullmatch(value), value


def utc(value: Any) -> None:
    stamp(value)
    assert value.endswith("+00:00")


class Many:
    """A list of things that obey one rule."""

    def __init__(self, rule: Any) -> None:
        self.rule = rule


DISK = {"name": ("R", text), "major": ("R", unsigned), "minor": ("R", unsigned), "stats": ("R", Many(unsigned))}
SYSTEM = {
    "boot": ("R", utc),
    "cpus": ("O", Many(unsigned)),
    "disks": ("O", Many(DISK)),
    "used_memory": ("O", unsigned),
    "load1": ("W", real),
    "load5": ("W", real),
    "load15": ("W", real),
    "runnable_entities": ("O", unsigned),
    "existing_entities": ("O", unsigned),
}
PROCESS = {
    "resident_memory": ("O", unsigned),
    "virtual_memory": ("O", unsigned),
    "cmd": ("O", text),
    "pid": ("O", narrow),
    "ppid": ("O", narrow),
    "in_container": ("O", true),
    "num_threads": ("O", unsigned),
    "cpu_avg": ("O", real),
    "cpu_util": ("O", real),
    "cpu_time": ("O", unsigned),
    "data_read": ("O", unsigned),
    "data_written": ("O", unsigned),
    "rolledup": ("O", unsigned),
}
JOB = {"job": ("R", narrow), "user": ("R", text), "epoch": ("O", unsigned), "processes": ("R", Many(PROCESS))}
PLACE = {"time": ("R", stamp), "cluster": ("R", text), "node": ("R", text)}
SAMPLE = {**PLACE, "system": ("R", SYSTEM), "jobs": ("R", Many(JOB))}
SYSINFO = {
    **PLACE,
    "os_name": ("R", text),
    "os_release": ("R", text),
    "architecture": ("R", text),
    "numa_nodes": ("R", unsigned),
    "sockets": ("R", positive),
    "cores_per_socket": ("R", positive),
    "threads_per_core": ("R", positive),
    "cpu_model": ("R", text),
    "memory": ("R", positive),
    "distances": ("R", Many(Many(unsigned))),
}
ERROR = {**PLACE, "detail": ("R", text)}
META = {"producer": ("R", text), "version": ("R", text)}


def obeys(value: Any, rule: Any) -> None:
    """AssertionError where it does not."""
    if isinstance(rule, Many):
        assert type(value) is list
        for item in value:
            obeys(item, rule.rule)
    elif isinstance(rule, dict):
        assert type(value) is dict
        assert value.keys() <= rule.keys()
        for name, (presence, inner) in rule.items():
            assert name in value or presence != "R", f"{name} is missing"
            if name in value:
                assert value[name] or presence != "O", f"{name} is {value[name]!r} and should be left out"
                obeys(value[name], inner)
    else:
        rule(value)


def check(content: Any, kind: str) -> None:
    """A whole document, decoded from its JSON."""
    obeys(content["meta"], META)
    if "errors" in content:
        assert set(content) == {"meta", "errors"}
        obeys(content["errors"], Many(ERROR))
        return
    assert set(content) == {"meta", "data"}
    assert content["data"]["type"] == kind
    assert set(content["data"]) == {"type", "attributes"}
    attributes = content["data"]["attributes"]
    obeys(attributes, {"sample": SAMPLE, "sysinfo": SYSINFO}[kind])
    if kind == "sample":
        pairs = [(job["user"], job["job"], job.get("epoch", 0)) for job in attributes["jobs"] if job["job"]]
        assert len(pairs) == len(set(pairs)), "one record for each user and job"
        assert all(len(job["processes"]) == 1 for job in attributes["jobs"] if not job["job"])
        assert all(len(disk["stats"]) in (11, 15, 17) for disk in attributes["system"].get("disks", []))
    else:
        assert all(len(line) == attributes["numa_nodes"] for line in attributes["distances"])
