"""The batch job exporter's command line: its flags as they stand in units and scripts, and what they are here.

In the order in which they count: what turns everything off comes before what turns one thing on.
"""

import argparse
import os
from collections.abc import Callable, Mapping
from functools import partial
from typing import Any

from jobsight.compat.batchflags import NONE, Flag
from jobsight.settings import Settings

# What it takes for all there are, at most: a node is for its jobs.
NO_LIMIT = 256
PLACES = {"--path.procfs": "/proc", "--path.sysfs": "/sys", "--path.cgroupfs": "/sys/fs/cgroup"}
COUNTRY = "FR"
TOKEN = "EMAPS_API_TOKEN"  # noqa: S105  # the variable's name


def _exporter(settings: Settings, **values: Any) -> Settings:
    return settings._replace(exporter=settings.exporter._replace(**values))


def _batchjob(settings: Settings, **values: Any) -> Settings:
    return _exporter(settings, batchjob=settings.exporter.batchjob._replace(**values))


def _options(settings: Settings, name: str, **values: Any) -> Settings:
    """With other options of one of our collectors."""
    return settings._replace(
        collect=tuple(
            plan._replace(options=plan.options._replace(**values)) if plan.name == name else plan
            for plan in settings.collect
        )
    )


def _listen(settings: Settings, text: str) -> Settings:
    # A bare port means every address there; here it means this machine.
    return _exporter(settings, listen=f"0.0.0.0{text}" if text[:1] == ":" else text)  # noqa: S104


def _path(settings: Settings, text: str) -> Settings:
    return _exporter(settings, path=text if text.startswith("/") else f"/{text}")


def _requests(settings: Settings, text: str) -> Settings:
    if not (text.isascii() and text.isdecimal()):
        raise ValueError(f"expected a number, got {text!r}")
    return _exporter(settings, requests=min(int(text), NO_LIMIT) or NO_LIMIT)


def _collect(name: str, settings: Settings, _: str) -> Settings:
    shown = settings.exporter.batchjob.collect
    return _batchjob(settings, collect=shown if name in shown else (*shown, name))


def _leave_out(name: str, settings: Settings, _: str) -> Settings:
    return _batchjob(settings, collect=tuple(one for one in settings.exporter.batchjob.collect if one != name))


def _emissions(settings: Settings, _: str) -> Settings:
    for plan in settings.collect:
        if plan.name == "emissionfactor" and not (plan.options.country or plan.options.providers):
            settings = _options(settings, "emissionfactor", country=COUNTRY)
    return _collect("emissions", settings, _)


def _country(settings: Settings, text: str) -> Settings:
    if len(text) != 2 or not (text.isascii() and text.isalpha()):
        raise ValueError(f"expected a country's two letters, got {text!r}")
    return _options(settings, "emissionfactor", country=text.upper())


def _vendor(settings: Settings, text: str) -> Settings:
    if text not in ("nvidia", "amd"):
        raise ValueError(f"expected nvidia or amd, got {text!r}")
    return _batchjob(settings, vendor=text)


def _command(settings: Settings, text: str) -> Settings:
    """Split at blanks, as it was there. With sudo before it: without a password, or not at all."""
    words = tuple(text.split())
    if not words or words == ("sudo",):
        raise ValueError("expected a command")
    if words[0].rpartition("/")[2] == "sudo":
        return _options(settings, "ipmi", command=words[1:], sudo=True)
    return _options(settings, "ipmi", command=words)


def _text(field: str) -> Callable[[Settings, str], Settings]:
    return lambda settings, text: _batchjob(settings, **{field: text})


def _switch(name: str, field: str) -> tuple[Flag, Flag]:
    return (
        Flag((f"--{name}",), lambda settings, _: _batchjob(settings, **{field: True}), bare=True),
        Flag((f"--no-{name}",), lambda settings, _: _batchjob(settings, **{field: False}), bare=True),
    )


ON = ("slurm_job", "ipmi_dcmi", "rapl")
FLAGS = (
    Flag(("--web.listen-address",), _listen),
    Flag(("--web.telemetry-path",), _path),
    Flag(("--web.max-requests",), _requests),
    Flag(("--web.disable-exporter-metrics",), lambda settings, _: _exporter(settings, itself=False), bare=True),
    Flag(("--collector.disable-defaults",), lambda settings, _: _batchjob(settings, collect=()), bare=True),
    Flag(("--collector.emissions.country.code",), _country),
    *(Flag((f"--collector.{name}",), partial(_collect, name), bare=True) for name in ON),
    *(Flag((f"--no-collector.{name}",), partial(_leave_out, name), bare=True) for name in ON),
    Flag(("--collector.emissions",), _emissions, bare=True),
    Flag(("--no-collector.emissions",), partial(_leave_out, "emissions"), bare=True),
    Flag(("--collector.slurm.job.props.path",), _text("job_path")),
    Flag(("--collector.slurm.gpu.job.map.path",), _text("gpu_path")),
    Flag(("--collector.slurm.gpu.type",), _vendor),
    *_switch("collector.slurm.create.unique.jobids", "unique_ids"),
    *_switch("collector.slurm.swap.memory.metrics", "swap"),
    *_switch("collector.slurm.psi.metrics", "pressure"),
    Flag(("--collector.slurm.jobsteps.metrics",), lambda settings, _: _exporter(settings, steps=True), bare=True),
    Flag(("--no-collector.slurm.jobsteps.metrics",), lambda settings, _: _exporter(settings, steps=False), bare=True),
    *_switch("collector.rapl.enable-zone-label", "zone_label"),
    Flag(("--collector.ipmi.dcmi.cmd",), _command),
    Flag(("--collector.empty.hostname.label",), lambda settings, _: _batchjob(settings, hostname=""), bare=True),
    *(Flag((name,)) for name in PLACES),
    Flag(("--collector.slurm.force.cgroups.version",), remark=NONE),
    Flag(("--collector.slurm.nvidia.smi.path",), remark=NONE),
    Flag(("--collector.slurm.rocm.smi.path",), remark=NONE),
    Flag(("--runtime.gomaxprocs",), remark=NONE),
    Flag(("--log.level",), remark=NONE),
    Flag(("--log.format",), remark=NONE),
)


def with_token(settings: Settings, variables: Mapping[str, str]) -> Settings:
    """With Electricity Maps' token, which it took from its environment. Here secrets are in files: this one is in
    memory, where nobody else finds it.
    """
    token = variables.get(TOKEN)
    if not token or any(plan.name == "emissionfactor" and plan.options.token_file for plan in settings.collect):
        return settings
    held = os.memfd_create("token")
    os.write(held, token.encode())
    return _options(settings, "emissionfactor", token_file=f"/proc/self/fd/{held}")


def root(given: argparse.Namespace) -> str | None:
    """The directory that stands for the machine, from where its file systems are said to be: `/host/proc` means
    `/host`. ValueError if they are not below one place as on a machine.
    """
    found = {}
    for name, usual in PLACES.items():
        for text in getattr(given, name):
            place = text.rstrip("/")
            if not place.endswith(usual):
                raise ValueError(f"{name}: expected a path that ends with {usual}, got {text!r}")
            found[name] = place.removesuffix(usual) or "/"
    if len(set(found.values())) > 1:
        raise ValueError(f"{', '.join(found)}: expected paths below one directory")
    return next(iter(found.values()), None)
