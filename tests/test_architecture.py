"""Rules of the house that a machine can check."""

import ast
import importlib
import sys
from pathlib import Path
from typing import Any

import duckdb
import pytest

from jobsight import catalogue
from jobsight.analyse.keeper import DERIVED
from jobsight.schema.record import fields_of
from jobsight.schema.sqltable import POSTGRES_RESERVED, STAMP

ROOT = Path(__file__).parent.parent
SOURCE = ROOT / "src" / "jobsight"
FILES = sorted(SOURCE.rglob("*.py"))

# The stages, left to right: nothing imports what stands further right.
STAGES = (
    "schema",
    "formats",
    "drivers",
    "collect",
    "compat",
    "agent",
    "ship",
    "exporter",
    "ingest",
    "store",
    "analyse",
    "show",
    "simulate",
    "cli",
)
NODE_SIDE = ("schema", "formats", "drivers", "collect", "compat", "agent", "ship", "exporter")
NODE_FILES = (
    "host.py",
    "collector.py",
    "command.py",
    "catalogue.py",
    "settings.py",
    "clock.py",
    "files.py",
    "frame.py",
    "recording.py",
    "apart.py",
    "containers.py",
    "exclusion.py",
    "lineage.py",
    "metering.py",
    "ownership.py",
    "prologs.py",
    "rollup.py",
    "roster.py",
    "serving.py",
    "sleepers.py",
)
# The agent hands to sinks, sinks know the agent's schedule.
TOGETHER = {frozenset({"agent", "ship"})}

BANNED = {"base", "abstract", "impl", "manager", "handler", "helper", "helpers", "util", "utils", "common", "misc",
          "info", "data"}  # fmt: skip
LONGEST_FILE = 300
LONGEST_FUNCTION = 50


def node_side_files() -> list[Path]:
    folders = [path for path in FILES if path.relative_to(SOURCE).parts[0] in NODE_SIDE]
    return folders + [SOURCE / name for name in NODE_FILES]


def imports(path: Path) -> set[str]:
    """Every module a file imports, wherever in the file."""
    found = set()
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and node.module:
            found.add(node.module)
            found |= {f"{node.module}.{alias.name}" for alias in node.names}
    return found


def name(path: Path) -> str:
    return str(path.relative_to(ROOT))


@pytest.mark.parametrize("path", node_side_files(), ids=name)
def test_node_side_needs_only_the_standard_library(path: Path) -> None:
    # Settings are YAML; a client for Kafka is an extra, and loaded by those who send there.
    allowed = {"jobsight", *{"settings.py": ["yaml"], "producer.py": ["confluent_kafka"]}.get(path.name, [])}
    packages = {module.partition(".")[0] for module in imports(path)}
    assert packages - allowed <= sys.stdlib_module_names


@pytest.mark.parametrize("path", FILES, ids=name)
def test_nothing_imports_what_stands_to_its_right(path: Path) -> None:
    stage = path.relative_to(SOURCE).parts[0]
    if stage not in STAGES:
        return
    for module in imports(path):
        parts = module.split(".")
        if parts[0] == "jobsight" and len(parts) > 1 and parts[1] in STAGES:
            left = STAGES.index(parts[1]) <= STAGES.index(stage)
            assert left or frozenset({parts[1], stage}) in TOGETHER, f"{stage} imports {module}"


@pytest.mark.parametrize("path", node_side_files(), ids=name)
def test_node_side_reaches_the_machine_through_host_and_files_alone(path: Path) -> None:
    if path.name in ("host.py", "files.py", "frame.py", "recording.py"):
        return
    assert not imports(path) & {"subprocess", "os.popen", "os.system", "pathlib", "io.open", "glob", "shutil"}
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Call):
            called = ast.unparse(node.func)
            assert called not in {"open", "os.open", "os.popen", "os.system", "io.open", "os.fork"}, f"{called}()"


@pytest.mark.parametrize("path", FILES, ids=name)
def test_files_and_functions_stay_short(path: Path) -> None:
    assert len(path.read_text().splitlines()) <= LONGEST_FILE
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef) and node.end_lineno:
            assert node.end_lineno - node.lineno < LONGEST_FUNCTION, f"{node.name} is too long"


@pytest.mark.parametrize("path", FILES, ids=name)
def test_no_file_has_a_name_that_says_nothing(path: Path) -> None:
    assert not BANNED & set(path.stem.lower().split("_"))


# What answers requests sees the store through a viewer's eyes. `health` says only that the store answers.
SEES_STORE = {"jobsight.store.protocol", "jobsight.store.protocol.JobQuery", "jobsight.store.protocol.StoreError"}


@pytest.mark.parametrize("path", sorted((SOURCE / "show").glob("*.py")), ids=name)
def test_routes_cannot_reach_the_store_without_a_viewer(path: Path) -> None:
    found = imports(path)
    if "fastapi.APIRouter" not in found or path.name == "health.py":
        return
    doors = ("jobsight.store", "jobsight.analyse.keeper", "jobsight.analyse.profile")
    assert not {module for module in found if module.startswith(doors)} - SEES_STORE
    assert not any(
        isinstance(node, ast.Attribute) and node.attr in ("_store", "_admission")
        for node in ast.walk(ast.parse(path.read_text()))
    )


def test_the_application_hands_the_store_itself_to_nothing_that_shows_it() -> None:
    tree = ast.parse((SOURCE / "show" / "app.py").read_text())
    given = {
        ast.unparse(call.func)
        for call in ast.walk(tree)
        if isinstance(call, ast.Call)
        for argument in [*call.args, *(word.value for word in call.keywords)]
        if "store" in {part.id for part in ast.walk(argument) if isinstance(part, ast.Name)}
    }
    inner = {"http.receiver", "health.router", "Views"}
    assert given - {"app.include_router"} <= inner


def test_only_what_must_not_stop_catches_everything() -> None:
    blind = [
        name(path)
        for path in FILES
        for node in ast.walk(ast.parse(path.read_text()))
        if isinstance(node, ast.ExceptHandler) and (node.type is None or ast.unparse(node.type) == "Exception")
    ]
    assert blind == [
        "src/jobsight/agent/run.py",  # one collector must not stop the others
        "src/jobsight/drivers/attendant.py",  # whatever a vendor's library does is told, not suffered
        "src/jobsight/ingest/kafka.py",  # nor one record the reading
        "src/jobsight/show/digester.py",  # nor one batch the loading
        "src/jobsight/store/embedded.py",  # nor one segment those after it
    ]


def tables() -> dict[str, type[Any]]:
    return {found.name: found.record for found in catalogue.collectors()} | DERIVED


def test_names_are_free_in_both_sql_engines() -> None:
    asked = "SELECT keyword_name FROM duckdb_keywords() WHERE keyword_category = 'reserved'"
    rows = duckdb.connect().execute(asked).fetchall()
    reserved = POSTGRES_RESERVED | {row[0] for row in rows}
    names = set(STAMP) | set(tables()) | {field.name for record in tables().values() for field in fields_of(record)}
    assert not names & reserved


def test_no_field_hides_one_that_every_row_carries() -> None:
    for record in tables().values():
        assert not {field.name for field in fields_of(record)} & set(STAMP)


def test_every_collector_file_declares_the_collector_of_its_name() -> None:
    for path in (SOURCE / "collect").glob("[a-z]*.py"):
        assert catalogue.collector(path.stem).name == path.stem


def test_the_version_is_said_once_and_the_same() -> None:
    version = importlib.import_module("jobsight").__version__
    assert f'version = "{version}"' in (ROOT / "pyproject.toml").read_text()


def test_reference_pages_are_fresh() -> None:
    sys.path.insert(0, str(ROOT / "scripts"))
    try:
        stale = importlib.import_module("reference").stale()
    finally:
        sys.path.pop(0)
    assert stale == [], "run `make docs`"
