"""Recorded machines as Sonar documents. GOLDEN=1 rewrites the golden files for review."""

import json
import os
from pathlib import Path
from typing import Any

import pytest

from jobsight.compat.sonar import Document, encode
from jobsight.schema.message import Message
from tests.compat import rules
from tests.compat.messages import MACHINES, attributes, recorded, translator

GOLDEN = Path(__file__).parent / "golden"


def documents(messages: list[Message]) -> list[Document]:
    made = translator()
    return [document for message in messages for document in made.documents(message)]


def name(machine: Path) -> str:
    return machine.name


def in_order(content: Any) -> Any:
    """Jobs and processes by pid: a copy of /proc is listed as its disk likes."""
    jobs = content["data"]["attributes"].get("jobs", [])
    for job in jobs:
        job["processes"].sort(key=lambda process: process["pid"])
    jobs.sort(key=lambda job: job["processes"][0]["pid"])
    return content


@pytest.mark.parametrize("machine", MACHINES, ids=name)
def test_a_recorded_machine_gives_the_documents_it_gave(machine: Path) -> None:
    found = []
    for document in documents(recorded(machine)):
        content = json.loads(encode(document))
        assert content.pop("meta")["producer"] == "jobsight"  # the version is another one at every release
        found.append(in_order(content))
    golden = GOLDEN / f"{machine.name}.json"
    if os.environ.get("GOLDEN"):
        golden.write_text(json.dumps(found, indent=1) + "\n")
    assert found == json.loads(golden.read_text())


@pytest.mark.parametrize("machine", MACHINES, ids=name)
def test_its_documents_obey_the_tables_of_the_format(machine: Path) -> None:
    made = documents(recorded(machine) + recorded(machine, after=30.0))
    assert [document.kind for document in made] == ["sysinfo", "sample"] * 2
    for document in made:
        rules.check(json.loads(encode(document)), document.kind)


@pytest.mark.parametrize("machine", MACHINES, ids=name)
def test_no_process_is_lost_or_doubled_and_no_time_and_memory_either(machine: Path) -> None:
    messages = recorded(machine)
    rows = messages[-1].rows
    jobs = attributes(documents(messages)[-1])["jobs"]
    sent = [process for job in jobs for process in job["processes"]]
    assert sorted(process["pid"] for process in sent) == sorted(rows["pid"])
    times = zip(rows["cpu_user"], rows["cpu_system"], rows["cpu_children"], strict=True)
    assert total(sent, "cpu_time") == sum(int(sum(parts) + 0.5) for parts in times)
    assert total(sent, "resident_memory") * 1024 == sum(size or 0 for size in rows["memory_anon"])
    assert total(sent, "num_threads") + len(sent) == sum(rows["threads"])
    assert total(sent, "data_read") == sum(-(-(size or 0) // 1024) for size in rows["read"])


def total(processes: list[dict[str, Any]], key: str) -> int:
    return sum(process.get(key, 0) for process in processes)
