"""A storm of short processes whose truth is known.

`storm.py NAME COUNT SECONDS THREADS`: COUNT children called NAME, one after the other, each burning SECONDS of CPU
time, or each of its THREADS doing so. Then one line says what they used, as wait4 has it; the parent, which by then
has another name, stays until standard input is closed.
"""

import os
import sys
import threading
import time


def call(path: str, name: str) -> None:
    with open(path, "w") as file:
        file.write(name)


def burn(seconds: float) -> None:
    end = time.thread_time() + seconds
    while time.thread_time() < end:
        pass


def thread(name: str, seconds: float) -> None:
    call("/proc/thread-self/comm", f"t{name}")
    burn(seconds)


def child(name: str, seconds: float, threads: int) -> None:
    if not threads:
        burn(seconds)
        return
    started = [threading.Thread(target=thread, args=(name, seconds)) for _ in range(threads)]
    for one in started:
        one.start()
    for one in started:
        one.join()


def main() -> None:
    name, count, seconds, threads = sys.argv[1], int(sys.argv[2]), float(sys.argv[3]), int(sys.argv[4])
    call("/proc/self/comm", name)
    used = 0.0
    for _ in range(count):
        pid = os.fork()
        if not pid:
            child(name, seconds, threads)
            os._exit(0)
        usage = os.wait4(pid, 0)[2]
        used += usage.ru_utime + usage.ru_stime
    call("/proc/self/comm", "storm")
    print(used, flush=True)
    sys.stdin.read()


main()
