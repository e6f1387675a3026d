"""Whatever the messages hold, the documents obey the tables of Sonar's format."""

import json
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from jobsight.compat.sonar import encode
from tests.compat import rules
from tests.compat.messages import PROCESS, message, translator

TEXT = st.text(max_size=20)
SIZE = st.none() | st.integers(0, 2**50)
TICKS = st.integers(0, 10**9).map(lambda ticks: ticks / 100)
ROW = st.fixed_dictionaries(
    {
        "pid": st.integers(1, 2**22),
        "started": TICKS,
        "parent": st.integers(0, 2**22),
        "process_group": st.integers(-1, 2**22),
        "scheduler": st.sampled_from(["slurm", "session", "docker", "pbs"]),
        "job": st.integers(0, 2**40).map(str) | TEXT,
        "owner": TEXT,
        "command": TEXT,
        "state": st.sampled_from("RSDZT"),
        "threads": st.integers(0, 10**5),
        "cpu_user": TICKS,
        "cpu_system": TICKS,
        "cpu_children": TICKS,
        "memory_anon": SIZE,
        "read": SIZE,
        "written": SIZE,
        "merged": st.none() | st.integers(1, 1000),
    }
)
ROUND = st.lists(ROW, max_size=6, unique_by=lambda row: (row["pid"], row["started"]))


@given(ROUND, ROUND)
def test_whatever_processes_there_are_the_document_obeys_the_tables(
    before: list[dict[str, Any]], after: list[dict[str, Any]]
) -> None:
    made = translator()
    for seconds, rows in ((0.0, before), (30.0, after)):
        listed = [{**PROCESS, **row} for row in rows]
        (document,) = made.documents(message("process", listed, seconds, uptime=1e7 + seconds))
        line = encode(document)
        assert line.count(b"\n") == 1
        content = json.loads(line)
        rules.check(content, "sample")
        sent = [p for job in content["data"]["attributes"]["jobs"] for p in job["processes"]]
        assert sorted(p["pid"] for p in sent) == sorted(row["pid"] for row in rows)
