"""The compiled parts of the bench, made anew for each run in its own folder."""

import os
import shutil
import subprocess

HERE = os.path.dirname(os.path.abspath(__file__))
RUSTC = os.path.expanduser("~/.cargo/bin/rustc")


def farm(folder: str) -> str:
    """The farm's program."""
    compiler = shutil.which("cc") or shutil.which("gcc")
    if not compiler:
        raise SystemExit("a C compiler is needed for the farm of processes: install gcc")
    made = os.path.join(folder, "farm")
    subprocess.run((compiler, "-O2", "-pthread", "-o", made, os.path.join(HERE, "farm.c")), check=True)
    return made


def standin(folder: str) -> str | None:
    """The stand-in for Sonar; None where there is no Rust."""
    compiler = shutil.which("rustc") or (RUSTC if os.path.exists(RUSTC) else None)
    if not compiler:
        return None
    made = os.path.join(folder, "standin")
    source = os.path.join(os.path.dirname(HERE), "rivals", "standin.rs")
    subprocess.run((compiler, "--edition", "2021", "-O", "-o", made, source), check=True)
    return made
