"""A simulated Lustre server as a directory tree, and as a program `lctl` that prints from it.

What a reader sees is written before it reads. Closing the file sweeps the target, and as nobody tells us when a file
is closed, writing does so.
"""

import sys
from pathlib import Path

from jobsight.simulate.lustretarget import Target
from jobsight.simulate.lustretext import FOLDERS, Dialect, render, stats

TOTALS = {"mdt": "md_stats", "ost": "stats"}
# Looks for files as lctl does, and ends as it does where there are none.
LCTL = """#!{python} -IS
import glob, os, sys
code = 0
if sys.argv[1:2] != ["get_param"]:
    sys.exit(22)
for pattern in sys.argv[2:]:
    path = pattern.replace(".", "/")
    found = [name for root in ("sys/fs", "sys/kernel/debug", "proc/fs")
             for name in sorted(glob.glob(os.path.join({root!r}, root, "lustre", path)))]
    if not found:
        print(f"error: get_param: param_path '{{path}}': No such file or directory", file=sys.stderr)
        code = 2
    for name in found:
        folder, target, leaf = name.split("/")[-3:]
        with open(name, "rb") as file:
            content = file.read()
        several = content.count(b"\\n") > 1
        sys.stdout.buffer.write(f"{{folder}}.{{target}}.{{leaf}}=".encode() + (b"\\n" if several else b""))
        sys.stdout.buffer.write(content or b"\\n")
sys.exit(code)
"""


class Tree:
    """One server. `Host(str(tree.root))` reads it."""

    def __init__(self, root: Path, dialect: Dialect, booted: float = 0.0) -> None:
        self.root = root
        self.dialect = dialect
        self.booted = booted
        self.targets: list[Target] = []

    def mount(self, target: Target) -> None:
        self.targets.append(target)

    def unmount(self, target: Target) -> None:
        """It goes to another server: nothing of it stays."""
        self.targets.remove(target)
        for place in self._places(target):
            for path in place.glob("*"):
                path.unlink()
            if place.is_dir():
                place.rmdir()

    def write(self, now: float, skip: dict[str, int] | None = None) -> None:
        """What all files hold now, and what reading them does. Of a target in `skip` one entry is left out."""
        for target in self.targets:
            seen = target.read(now, (skip or {}).get(target.name))
            proc, sys_fs, debug = self._places(target)
            content = render(seen, target.kind, self.dialect, self.booted)
            _put(proc / "job_stats", content)
            interval = proc if self.dialect.name.startswith("2.12") else sys_fs
            _put(interval / "job_cleanup_interval", b"%d\n" % target.interval)
            moved = self.dialect.name == "2.17" and target.kind == "ost"
            _put((debug if moved else proc) / TOTALS[target.kind], stats(target, now, header=self.dialect.start))

    def lctl(self, folder: Path) -> Path:
        """A program that prints from the tree; its folder is for PATH."""
        program = folder / "lctl"
        folder.mkdir(parents=True, exist_ok=True)
        program.write_text(LCTL.format(python=sys.executable, root=str(self.root)))
        program.chmod(0o755)
        return program

    def _places(self, target: Target) -> tuple[Path, Path, Path]:
        below = f"lustre/{FOLDERS[target.kind]}/{target.name}"
        return (
            self.root / "proc/fs" / below, self.root / "sys/fs" / below, self.root / "sys/kernel/debug" / below
        )  # fmt: skip


def _put(path: Path, content: bytes) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(content)
