"""What is derived from records: tables, JSON Schema, metric names."""

from typing import Any

import duckdb
import jsonschema
import pytest

from jobsight import catalogue
from jobsight.agent.run import run
from jobsight.clock import SystemClock
from jobsight.collector import Collector
from jobsight.host import Host
from jobsight.schema import jsonschema as derived
from jobsight.schema.exposition import families, metric, openmetrics, text
from jobsight.schema.message import Origin
from jobsight.schema.record import columns, fields_of
from jobsight.schema.sqltable import additions, create
from jobsight.schema.wire import envelope

COLLECTORS = catalogue.collectors()


def by_name(found: Collector) -> str:
    return found.name


@pytest.mark.parametrize("found", COLLECTORS, ids=by_name)
def test_a_real_message_satisfies_its_json_schema(found: Collector) -> None:
    message = run(found, None, Host("/"), Origin("fox", "n1", "b1"), SystemClock())
    plain = envelope(message)
    plain["rows"] = {name: list(values) for name, values in plain["rows"].items()}
    jsonschema.validate(plain, derived.message(found))
    plain["rows"]["surprise"] = [1]
    with pytest.raises(jsonschema.ValidationError):
        jsonschema.validate(plain, derived.message(found))


@pytest.mark.parametrize("found", COLLECTORS, ids=by_name)
def test_a_table_has_the_stamp_and_every_field(found: Collector) -> None:
    with duckdb.connect() as engine:
        engine.execute(create(found.name, found.record))
        described = engine.execute(f"PRAGMA table_info('{found.name}')").fetchall()
    names = [row[1] for row in described]
    assert names == ["cluster", "node", "boot", "time", *(field.name for field in fields_of(found.record))]
    required = {row[1] for row in described if row[3]}
    assert required >= {field.name for field in fields_of(found.record) if not field.optional}


def test_an_older_table_gets_the_new_columns_only() -> None:
    found = catalogue.collector("memory")
    present = {"cluster", "node", "boot", "time", "total", "available", "free", "cached", "shared"}
    assert additions("memory", found.record, present) == [
        "ALTER TABLE memory ADD COLUMN dirty BIGINT",
        "ALTER TABLE memory ADD COLUMN swap_total BIGINT",
        "ALTER TABLE memory ADD COLUMN swap_free BIGINT",
    ]


def test_metric_names_follow_the_custom() -> None:
    fields = {field.name: field for field in fields_of(catalogue.collector("process").record)}
    assert metric("process", fields["cpu_user"]) == "jobsight_process_cpu_user_seconds_total"
    assert metric("process", fields["memory_anon"]) == "jobsight_process_memory_anon_bytes"
    assert metric("process", fields["threads"]) == "jobsight_process_threads"


def test_exposition_escapes_what_a_label_may_hold_and_leaves_out_what_is_missing() -> None:
    record: Any = catalogue.collector("cgroup").record
    row = record(scheduler="slurm", job='7"\n\\', path="p", cpu_time=1.5)
    found = list(families("cgroup", record, columns(record, [row])))
    sample = 'jobsight_cgroup_cpu_time_seconds_total{scheduler="slurm",jobid="7\\"\\n\\\\",path="p"} 1.5'
    assert "".join(text(found)).splitlines() == [
        "# HELP jobsight_cgroup_cpu_time_seconds_total CPU time of all its processes, ended ones included.",
        "# TYPE jobsight_cgroup_cpu_time_seconds_total counter",
        sample,
    ]
    assert "".join(openmetrics(found)).splitlines() == [
        "# HELP jobsight_cgroup_cpu_time_seconds CPU time of all its processes, ended ones included.",
        "# TYPE jobsight_cgroup_cpu_time_seconds counter",
        sample,
        "# EOF",
    ]


def test_a_series_keeps_its_name_whatever_becomes_of_the_thing_it_is_about() -> None:
    record: Any = catalogue.collector("gpu").record
    calm, hot = (
        record(uuid="GPU-1", vendor="nvidia", power=7.0, throttle=why, xid=code, trouble=why, held_by=why)
        for why, code in ((None, None), ("heat", 79))
    )
    before, after = ("".join(text(families("gpu", record, columns(record, [row])))) for row in (calm, hot))
    assert after.startswith(before)
    assert 'jobsight_gpu_xid{uuid="GPU-1",vendor="nvidia"} 79' in after


def test_what_a_record_says_in_words_is_one_series_where_it_describes() -> None:
    record: Any = catalogue.collector("allocation").record
    row = record(scheduler="slurm", job="7", owner="ada", source="prolog", cpus=4)
    lines = "".join(text(families("allocation", record, columns(record, [row])))).splitlines()
    assert [line for line in lines if not line.startswith("#")] == [
        'jobsight_allocation_cpus{scheduler="slurm",jobid="7"} 4',
        'jobsight_allocation_info{scheduler="slurm",jobid="7",owner="ada",source="prolog"} 1',
    ]
