"""A workload whose truth is known: it burns, holds and writes what it is told, and says what it really did.

`workload.py BURN HOLD WRITE SHORT FILE`: two children burn BURN CPU seconds each, one holds HOLD MiB, one writes
WRITE MiB to FILE, and SHORT children live for some 20 ms each. When all of it is done one line of JSON says what
was used; the children stay until standard input is closed.
"""

import json
import os
import sys
import time


def burn(seconds: float) -> None:
    while time.process_time() < seconds:
        pass


def hold(mebibytes: int) -> bytearray:
    block = bytearray(mebibytes * 2**20)
    block[::4096] = b"x" * len(block[::4096])
    return block


def write(mebibytes: int, path: str) -> None:
    block = os.urandom(2**20)
    with open(path, "wb") as file:
        file.writelines(block for _ in range(mebibytes))
        file.flush()
        os.fsync(file.fileno())


def status(name: str) -> int:
    with open("/proc/self/status") as file:
        return next(int(line.split()[1]) * 1024 for line in file if line.startswith(name))


def child(act: object, ready: int, stay: int, keep: int) -> None:
    """Fork; do it; say what it cost; stay until the parent closes its end of the pipe."""
    if os.fork():
        return
    os.close(keep)
    kept = act()  # type: ignore[operator]
    used = {"pid": os.getpid(), "cpu": time.process_time(), "anon": status("RssAnon:")}
    os.write(ready, json.dumps(used).encode() + b"\n")
    os.read(stay, 1)
    del kept
    os._exit(0)


def main() -> None:
    burned, held, written, short, path = float(sys.argv[1]), *map(int, sys.argv[2:5]), sys.argv[5]
    told, ready = os.pipe()
    stay, keep = os.pipe()
    acts = [lambda: burn(burned), lambda: burn(burned), lambda: hold(held), lambda: write(written, path)]
    for act in acts:
        child(act, ready, stay, keep)
    brief = 0.0
    for _ in range(short):
        pid = os.fork()
        if not pid:
            burn(time.process_time() + 0.02)
            os._exit(0)
        usage = os.wait4(pid, 0)[2]
        brief += usage.ru_utime + usage.ru_stime
    lines = b""
    while lines.count(b"\n") < len(acts):
        lines += os.read(told, 65536)
    children = [json.loads(line) for line in lines.splitlines()]
    own = {"pid": os.getpid(), "cpu": time.process_time(), "anon": status("RssAnon:")}
    print(json.dumps({"children": children, "brief": brief, "self": own}), flush=True)
    sys.stdin.read()
    os.close(keep)


main()
