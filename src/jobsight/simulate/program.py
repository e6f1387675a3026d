"""The programs that people of a simulated cluster run, as the kernel shows their names."""

from random import Random
from typing import NamedTuple


class Program(NamedTuple):
    """One program and how it goes about its work."""

    command: str
    """At most 15 bytes, as in /proc."""
    way: str
    """`ranks`: a process a core, over nodes; `threads`: one process; `serial`: one core; `gpu`: feeds cards."""
    field: str
    memory: float
    """GiB a core."""
    traffic: float
    """MB/s a node while it reads its input or writes its results."""
    children: float = 0.0
    """The part of its CPU time that is used by children too short-lived to be met by a sample."""


PROGRAMS = (
    Program("vasp_std", "ranks", "chemistry", 1.8, 220),
    Program("cp2k.psmp", "ranks", "chemistry", 1.5, 150),
    Program("gmx_mpi", "ranks", "chemistry", 0.4, 90),
    Program("pw.x", "ranks", "physics", 2.1, 260),
    Program("lmp", "ranks", "physics", 0.6, 120),
    Program("wrf.exe", "ranks", "climate", 1.6, 700),
    Program("icon", "ranks", "climate", 2.4, 900),
    Program("bwa-mem2", "threads", "biology", 1.2, 400),
    Program("STAR", "threads", "biology", 2.0, 350),
    Program("snakemake", "threads", "biology", 1.0, 60, 0.7),
    Program("julia", "threads", "physics", 1.1, 30),
    Program("cdo", "threads", "climate", 1.4, 500),
    Program("Rscript", "serial", "biology", 3.0, 20),
    Program("python3", "serial", "learning", 2.5, 25),
    Program("orca_scf", "serial", "chemistry", 2.2, 40),
    Program("cdo", "serial", "climate", 2.0, 80),
    Program("root.exe", "serial", "physics", 1.8, 60),
    Program("python", "gpu", "learning", 6.0, 300),
    Program("gmx", "gpu", "chemistry", 1.0, 60),
    Program("relion_refine", "gpu", "biology", 5.0, 500),
)
FIELDS = ("chemistry", "learning", "biology", "physics", "climate")


def choose(chance: Random, way: str, field: str) -> Program:
    """One that works this way, of the field if it has any."""
    fit = [program for program in PROGRAMS if program.way == way]
    return chance.choice([program for program in fit if program.field == field] or fit)
