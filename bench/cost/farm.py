"""A farm of processes to sample: many sleep, some work when told to.

    farm.py PROCESSES ACTIVE_PERCENT

Prints `ready` and the pids. For each line on standard input every active process uses a tick of CPU time and writes
a little; `done` is printed when all have. The end of standard input ends the farm, however its owner died.
"""

import gc
import os
import resource
import signal
import sys
import time
from typing import NamedTuple, NoReturn

SESSION = 8
USERS = 10
FIRST_USER = 20001
NAMES = ("python3", "lmp_mpi", "gmx_mpi", "vasp_std", "orterun", "bash", "R", "julia", "ray::worker (x)", "nf core")
# A little more than one tick of the kernel's 100 Hz: the CPU time in the stat line moves at every poke.
BURN = 0.012


class Pipes(NamedTuple):
    """What farm and processes share."""

    life: int
    """Nothing is ever written; it ends with the farm."""
    keep: int
    """The other end of life."""
    answers: int
    answer: int
    scratch: int


def main() -> None:
    count, percent = int(sys.argv[1]), float(sys.argv[2])
    allow_children()
    pipes = Pipes(*os.pipe(), *os.pipe(), os.open("/tmp", os.O_TMPFILE | os.O_RDWR, 0o600))
    gc.freeze()
    leaders = []
    for start in range(0, count, SESSION):
        pid = os.fork()
        if not pid:
            lead(range(start, min(count, start + SESSION)), percent, pipes)
        leaders.append(pid)
    os.close(pipes.answer)
    # Each process says hello with one write, which a pipe never tears.
    with os.fdopen(pipes.answers, "r") as answers:
        hellos = [answers.readline().split() for _ in range(count)]
        active = [int(pid) for pid, busy in hellos if busy == "True"]
        print("ready", *(pid for pid, _ in hellos), flush=True)
        for _ in sys.stdin:
            for pid in active:
                os.kill(pid, signal.SIGUSR1)
            for _ in active:
                answers.readline()
            print("done", flush=True)
    os.close(pipes.keep)
    for pid in leaders:
        os.waitpid(pid, 0)


def allow_children() -> None:
    _, hard = resource.getrlimit(resource.RLIMIT_NPROC)
    resource.setrlimit(resource.RLIMIT_NPROC, (hard, hard))


def lead(indexes: range, percent: float, pipes: Pipes) -> NoReturn:
    """The first process of a session, which starts the others and waits for them."""
    os.close(pipes.keep)
    os.setsid()
    members = []
    for index in indexes[1:]:
        pid = os.fork()
        if not pid:
            live(index, percent, pipes)
            os._exit(0)
        members.append(pid)
    live(indexes[0], percent, pipes)
    for pid in members:
        os.waitpid(pid, 0)
    os._exit(0)


def live(index: int, percent: float, pipes: Pipes) -> None:
    """Sleep until the farm ends; an active process works whenever it is poked."""
    busy = int((index + 1) * percent / 100) > int(index * percent / 100)

    def work(*_: object) -> None:
        end = time.process_time() + BURN
        while time.process_time() < end:
            pass
        os.pwrite(pipes.scratch, b"x" * 4096, index * 4096)
        os.write(pipes.answer, b".\n")

    dress(index)
    if busy:
        signal.signal(signal.SIGUSR1, work)
    os.write(pipes.answer, f"{os.getpid()} {busy}\n".encode())
    os.read(pipes.life, 1)


def dress(index: int) -> None:
    """Look like a process of a job. The name first: who has changed its user may not write there any more."""
    with open("/proc/self/comm", "w") as name:
        name.write(NAMES[index // 3 % len(NAMES)])
    if os.geteuid() == 0:
        user = FIRST_USER + index // SESSION % USERS
        os.setgid(user)
        os.setuid(user)


if __name__ == "__main__":
    main()
