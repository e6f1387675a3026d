"""The first process of a namespace: lets actors burn CPU time, samples them, and says in the end what they used.

`stage.py SCENE …`, as root. Prints messages of the process collector, and last one line with the truth: who was who
(`roles`), CPU time by pid as wait4 has it (`used`), and that of everybody together (`total`).
"""

import ctypes
import json
import os
import resource
import select
import sys
import time
from collections.abc import Callable
from typing import Any

from jobsight import catalogue
from jobsight.agent.run import run
from jobsight.clock import SystemClock
from jobsight.host import Host
from jobsight.schema.message import Origin
from jobsight.schema.wire import encode

ALICE, BOB = 61001, 61002
NUMBER = 300
PR_SET_DUMPABLE = 4

ready, tell = os.pipe()
stay, keep = os.pipe()
collector = catalogue.collector("process")
host = Host()
roles: dict[str, dict[str, Any]] = {}
used: dict[int, float] = {}
heard = b""


def sample() -> None:
    message = run(collector, None, host, Origin("fox", "vm", "boot1"), SystemClock(), 1.0)
    sys.stdout.buffer.write(encode(message))
    sys.stdout.buffer.flush()


def burn(seconds: float) -> None:
    end = time.process_time() + seconds
    while time.process_time() < end:
        pass


def here(role: str) -> None:
    """Say who one is, in one piece."""
    line = {"role": role, "pid": os.getpid(), "session": os.getsid(0), "group": os.getpgid(0)}
    os.write(tell, json.dumps(line).encode() + b"\n")


def stand() -> None:
    """Until the stage closes the other end."""
    os.read(stay, 1)


def fork(act: Callable[[], None]) -> int:
    """A child that acts and ends."""
    pid = os.fork()
    if pid:
        return pid
    code = 1
    try:
        act()
        code = 0
    finally:
        os._exit(code)


def become(uid: int) -> None:
    """Another user, as a program is that was started by one: the kernel shows it to its owner."""
    os.setgroups([])
    os.setgid(uid)
    os.setuid(uid)
    ctypes.CDLL(None).prctl(PR_SET_DUMPABLE, 1)


def login(uid: int, act: Callable[[], None]) -> int:
    """A session of a user."""

    def begin() -> None:
        os.close(keep)
        os.setsid()
        become(uid)
        act()

    return fork(begin)


def working(role: str, seconds: float) -> Callable[[], None]:
    def act() -> None:
        burn(seconds)
        here(role)
        stand()

    return act


def await_roles(count: int) -> None:
    """Sample until so many have said who they are, then twice more."""
    global heard  # noqa: PLW0603
    while len(roles) < count:
        if select.select([ready], [], [], 0.3)[0]:
            heard += os.read(ready, 65536)
        *lines, heard = heard.split(b"\n")
        roles.update({told["role"]: told for told in map(json.loads, lines)})
        sample()
    time.sleep(0.2)
    sample()


def cost(usage: resource.struct_rusage) -> float:
    return usage.ru_utime + usage.ru_stime


def bury(pid: int = -1) -> float:
    """Wait for one, or for all that there are; what the last one used."""
    while True:
        try:
            gone, status, usage = os.wait4(pid, 0)
        except ChildProcessError:
            return 0.0
        assert status == 0, f"process {gone} ended with status {status}"
        used[gone] = cost(usage)
        if gone == pid:
            return used[gone]


def crowd() -> None:
    def member(role: str, seconds: float) -> int:
        def act() -> None:
            os.setpgid(0, 0)
            working(role, seconds)()

        return fork(act)

    def shell() -> None:
        members = [member("left", 0.3), member("middle", 0.4), member("right", 0.5)]
        working("shell", 0.2)()
        for pid in members:
            os.waitpid(pid, 0)

    def starter() -> None:
        def leave() -> None:
            os.setsid()
            fork(working("daemon", 0.7))

        os.waitpid(fork(leave), 0)
        working("starter", 0.4)()

    login(ALICE, working("alice", 0.6))
    login(ALICE, working("alice again", 0.9))
    login(BOB, working("bob", 0.5))
    login(BOB, shell)
    login(ALICE, starter)
    await_roles(9)
    os.close(keep)
    bury()


def as_number(start: Callable[[], int]) -> int:
    """Fork so that the child gets the number."""
    with open("/proc/sys/kernel/ns_last_pid", "w") as file:
        file.write(str(NUMBER - 1))
    pid = start()
    assert pid == NUMBER, f"got process {pid}"
    return pid


def reuse(between: str, when: str) -> None:
    global stay, keep
    for count, (role, uid, seconds) in enumerate((("first", ALICE, 1.5), ("second", BOB, 0.5)), 1):
        pid = as_number(lambda role=role, uid=uid, seconds=seconds: login(uid, working(role, seconds)))  # type: ignore[misc]
        await_roles(count)
        os.close(keep)
        roles[role]["used"] = bury(pid)
        if between == "a sample between":
            sample()
        if when == "after a while":
            time.sleep(1.5)
        stay, keep = os.pipe()


def again() -> None:
    """A job that gets the same number for two of its processes, one after the other."""
    steps, step = os.pipe()

    def leader() -> None:
        os.close(step)
        here("leader")
        for role, seconds in (("first", 0.8), ("second", 0.7)):
            os.read(steps, 1)

            def act(role: str = role, seconds: float = seconds) -> None:
                burn(seconds)
                here(role)
                os.read(steps, 1)

            os.waitpid(as_number(lambda act=act: fork(act)), 0)  # type: ignore[misc]
        burn(0.2)
        here("done")
        os.read(steps, 1)

    login(0, leader)
    for count in range(1, 5):
        await_roles(count)
        # One byte to end the child, one to go on; the last of each is for the leader.
        os.write(step, b"." if count in (1, 4) else b"..")
    bury()


def heirs() -> None:
    """Alice samples, and is not root: a parent that works, and has a child that works and ends."""
    global host  # noqa: PLW0603
    # Whatever is imported late is imported now: she may not be able to read it.
    run(collector, None, host, Origin("fox", "vm", "boot1"), SystemClock(), 1.0)
    host.close()
    host = Host()
    done, end = os.pipe()

    def child() -> None:
        os.close(end)
        burn(0.9)
        here("child")
        os.read(done, 1)

    def parent() -> None:
        pid = fork(child)
        os.close(end)
        here("parent")
        os.waitpid(pid, 0)
        working("heir", 0.3)()

    def watch() -> None:
        os.close(keep)
        os.close(end)
        stand()

    fork(watch)
    pid = login(ALICE, parent)
    become(ALICE)
    await_roles(2)
    os.close(end)
    await_roles(3)
    os.close(keep)
    roles["parent"]["used"] = bury(pid)


def main() -> None:
    # A session of its own: else it would belong to one outside that has no number here.
    os.setsid()
    {"crowd": crowd, "reuse": reuse, "again": again, "heirs": heirs}[sys.argv[1]](*sys.argv[2:])  # type: ignore[operator]
    sample()
    total = cost(resource.getrusage(resource.RUSAGE_SELF)) + cost(resource.getrusage(resource.RUSAGE_CHILDREN))
    print(json.dumps({"roles": roles, "used": used, "total": total}))


main()
