"""The batch job exporter's metrics, by its names and labels, from our rows. Pure.

Names and types are kept as dashboards know them, also where Prometheus' custom is another: CPU seconds are gauges
there and watts are counters. The same by better names is derived from the records (`schema.exposition`). What is not
known has no sample: there it was zero.
"""

import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import lru_cache
from typing import Any, NamedTuple

from jobsight.collect.cgroup import Cgroup
from jobsight.collect.emissionfactor import Emissionfactor
from jobsight.collect.gpu import Gpu
from jobsight.collect.ipmi import Ipmi
from jobsight.collect.power import Power
from jobsight.compat.batchjob import unique_id
from jobsight.schema.exposition import Family, mark, number

PREFIX = "batchjob"
# Its collectors, and ours that they are made of; the first decides whether it succeeded.
SOURCES = {
    "slurm_job": ("cgroup", "allocation", "memory", "gpu"),
    "rapl": ("power",),
    "ipmi_dcmi": ("ipmi",),
    "emissions": ("emissionfactor",),
}
PROVIDERS = {"rte": "RTE eCO2 Mix", "emaps": "Electricity Maps", "owid": "OWID", "constant": "Global Average"}


class Owner(NamedTuple):
    """What its labels say of a job."""

    number: str
    user: str = ""
    account: str = ""
    nodes: str = ""

    @property
    def known(self) -> bool:
        return bool(self.user and self.account and self.nodes)

    def unique_id(self) -> str:
        """Empty as long as a part of it is not known: it would be another one later."""
        return _unique_id(self) if self.known else ""


@lru_cache(4096)
def _unique_id(owner: Owner) -> str:
    return unique_id(owner.number, owner.user, owner.account, owner.nodes)


class Beside(NamedTuple):
    """What its metrics tell of a control group and our record does not."""

    memory_total: int | None = None
    """Its limit; of a job without one, the memory of its node."""
    failures: int | None = None
    """Times memory was refused (v1), or ran out (v2)."""
    cpu_full: float | None = None
    """Seconds in which all its tasks waited for a CPU."""
    swap_used: int | None = None
    swap_limit: int | None = None
    swap_failures: int | None = None


class Group(NamedTuple):
    """One job, step or task."""

    owner: Owner
    row: Cgroup
    beside: Beside


Value = Callable[[Group], float | None]
# Name, help, value.
JOB: tuple[tuple[str, str, Value], ...] = (
    ("cpu_user_seconds", "Cumulative CPU user seconds", lambda one: one.row.cpu_user),
    ("cpu_system_seconds", "Cumulative CPU system seconds", lambda one: one.row.cpu_system),
    ("cpu_total_seconds", "Cumulative CPU total seconds", lambda one: one.row.cpu_time),
    ("cpus", "Number of CPUs", lambda one: one.row.cpus),
    ("memory_rss_bytes", "Memory RSS used in bytes", lambda one: one.row.memory_anon),
    ("memory_cache_bytes", "Memory cache used in bytes", lambda one: one.row.memory_file),
    ("memory_used_bytes", "Memory used in bytes", lambda one: one.row.memory_used),
    ("memory_total_bytes", "Memory total in bytes", lambda one: one.beside.memory_total),
    ("memory_fail_count", "Memory fail count", lambda one: one.beside.failures),
)
PRESSURE: tuple[tuple[str, str, Value], ...] = (
    ("cpu_psi_seconds", "Cumulative CPU PSI seconds", lambda one: one.beside.cpu_full),
    ("memory_psi_seconds", "Cumulative memory PSI seconds", lambda one: one.row.pressure_memory_full),
)
SWAP: tuple[tuple[str, str, Value], ...] = (
    ("memsw_used_bytes", "Swap used in bytes", lambda one: one.beside.swap_used),
    ("memsw_total_bytes", "Swap total in bytes", lambda one: one.beside.swap_limit),
    ("memsw_fail_count", "Swap fail count", lambda one: one.beside.swap_failures),
)


def jobs(groups: list[Group], hostname: str, *, ids: bool, pressure: bool, swap: bool) -> Iterator[Family]:
    """`batchjob_slurm_job_*`: one sample a job, and a step or task where those are asked for."""
    single = alone(groups)
    marks = [
        mark((
            ("batch", "slurm"), ("hostname", hostname), ("jobaccount", owner.account), ("jobid", owner.number),
            ("jobuser", owner.user), ("jobuuid", owner.unique_id() if ids else ""), ("step", row.step or ""),
            ("task", row.task or ""),
        ))
        for owner, row, _ in single
    ]  # fmt: skip
    for short, about, value in (*JOB, *(PRESSURE if pressure else ()), *(SWAP if swap else ())):
        name = f"{PREFIX}_slurm_job_{short}"
        found = zip(marks, map(value, single), strict=True)
        yield Family(name, "gauge", about, [f"{name}{text} {number(v)}" for text, v in found if v is not None])


def alone(groups: list[Group]) -> list[Group]:
    """Without those that cannot be told apart by these labels: of two with one name, either number would be wrong."""
    seen: dict[tuple[str, str | None, str | None], int] = {}
    names = [(one.owner.number, one.row.step, one.row.task) for one in groups]
    for name in names:
        seen[name] = seen.get(name, 0) + 1
    return [one for one, name in zip(groups, names, strict=True) if seen[name] == 1]


def cards(held: Iterable[tuple[Gpu, Owner]], hostname: str, *, ids: bool) -> Iterator[Family]:
    """Which job has which card. The uuid has two names, so that joins with dcgm-exporter need no relabelling."""
    name = f"{PREFIX}_slurm_job_gpu_jobid_flag"
    samples = []
    for card, owner in held:
        text = mark((
            ("UUID", card.uuid), ("batch", "slurm"), ("hostname", hostname),
            ("index", "" if card.ordinal is None else card.ordinal), ("jobaccount", owner.account),
            ("jobid", owner.number), ("jobuser", owner.user), ("jobuuid", owner.unique_id() if ids else ""),
            ("uuid", card.uuid),
        ))  # fmt: skip
        samples.append(f"{name}{text} 1")
    yield Family(name, "gauge", "Indicates running job on GPU, 1=job running", samples)


def rapl(rows: Iterable[Power], hostname: str, *, zone_label: bool) -> Iterator[Family]:
    """Counters as the kernel has them: `package-0` is number 0 of the zone `package`; others are numbered as they
    come.
    """
    found: dict[str, list[str]] = {}
    counts: dict[str, int] = {}
    for row in rows:
        if row.source != "rapl":
            continue
        named = row.sensor.rpartition("/")[2]
        cut = re.fullmatch(r"(.+)-(\d+)", named, re.ASCII)
        zone = re.sub(r"[^a-zA-Z0-9_]", "_", cut[1] if cut else named)
        index = cut[2] if cut else str(counts.get(zone, 0))
        counts[zone] = counts.get(zone, 0) + 1
        if row.energy is None:
            continue
        name = f"{PREFIX}_rapl_joules_total" if zone_label else f"{PREFIX}_rapl_{zone}_joules_total"
        pairs = [("hostname", hostname), ("index", index), ("path", f"/sys/class/powercap/{row.device}")]
        text = mark([*pairs, ("rapl_zone", zone)] if zone_label else pairs)
        found.setdefault(name, []).append(f"{name}{text} {number(row.energy)}")
    for name, samples in sorted(found.items()):
        zone = name.removeprefix(f"{PREFIX}_rapl_").removesuffix("joules_total").rstrip("_") or "zone"
        yield Family(name, "counter", f"Current RAPL {zone} value in joules", samples)


def ipmi(rows: Iterable[Ipmi], hostname: str) -> Iterator[Family]:
    for row in rows:
        for short, about, value in (
            ("current", "Current", row.power),
            ("max", "Maximum", row.power_most),
            ("min", "Minimum", row.power_least),
        ):
            if value is not None:
                name = f"{PREFIX}_ipmi_dcmi_{short}_watts_total"
                text = f"{name}{mark([('hostname', hostname)])} {number(value)}"
                yield Family(name, "counter", f"{about} Power consumption in watts", [text])


def emissions(rows: Iterable[Emissionfactor]) -> Iterator[Family]:
    name = f"{PREFIX}_emissions_gCo2_kWh"
    samples = []
    for row in rows:
        provider = "global" if row.provider == "constant" else row.provider
        country = "" if row.provider == "constant" else row.zone
        text = mark(
            (
                ("country", country),
                ("provider", provider),
                ("provider_name", PROVIDERS.get(row.provider, row.provider)),
            )
        )
        samples.append(f"{name}{text} {number(row.factor)}")
    yield Family(name, "gauge", "Current emission factor in grams of CO2 equivalent per kilowatt hour", samples)


def states(runs: Mapping[str, tuple[bool, float]]) -> Iterator[Family]:
    """How its collectors went, and how long they took."""
    good, long = f"{PREFIX}_scrape_collector_success", f"{PREFIX}_scrape_collector_duration_seconds"
    texts = {name: mark([("collector", name)]) for name in sorted(runs)}
    about = "batchjob_exporter: Duration of a collector scrape."
    yield Family(long, "gauge", about, [f"{long}{text} {number(runs[name][1])}" for name, text in texts.items()])
    about = "batchjob_exporter: Whether a collector succeeded."
    yield Family(good, "gauge", about, [f"{good}{text} {int(runs[name][0])}" for name, text in texts.items()])


def build(version: str, machine: str) -> Family:
    """Of its labels those are filled that mean something here."""
    name = f"{PREFIX}_exporter_build_info"
    pairs: list[tuple[str, Any]] = [
        ("branch", ""), ("goarch", {"x86_64": "amd64", "aarch64": "arm64"}.get(machine, machine)), ("goos", "linux"),
        ("goversion", ""), ("revision", ""), ("version", version),
    ]  # fmt: skip
    about = "Which release this is: always 1. Labels as batchjob_exporter has them; this is no Go program."
    return Family(name, "gauge", about, [f"{name}{mark(pairs)} 1"])
