"""One contender: a resident sampler that takes one sample for each line on standard input.

    sampler.py agent SETTINGS     the agent, as it runs on a node
    sampler.py cold SETTINGS      the agent, with a host that knows nothing at every sample: everything is read
    sampler.py psutil             psutil's process_iter

A line may hold the number of samples to take. Answers with an empty line.
"""

import json
import os
import sys
from collections.abc import Callable


def agent(file: str, *, cold: bool) -> Callable[[], None]:
    from jobsight.agent.service import Agent, open_sinks, settle
    from jobsight.clock import SystemClock
    from jobsight.host import Host
    from jobsight.settings import from_values

    with open(file) as text:
        settings = from_values(json.load(text))
    host, clock = Host(), SystemClock()
    sinks = open_sinks(settings, host, clock)
    resident = Agent(settings, host, clock, sinks)
    settle()

    def fresh() -> None:
        empty = Host()
        once = Agent(settings, empty, clock, sinks)
        once.step()
        once.close()
        empty.close()

    return fresh if cold else resident.step


def rival() -> Callable[[], None]:
    import psutil  # type: ignore[import-untyped]

    wanted = ["pid", "ppid", "cpu_times", "num_threads", "create_time", "memory_info", "status", "uids", "name"]

    def sample() -> None:
        # Group and session have no name in psutil, and control groups no place: it is spared those.
        for process in psutil.process_iter(wanted):
            try:
                os.getpgid(process.pid)
                os.getsid(process.pid)
            except ProcessLookupError:
                continue

    return sample


def main() -> None:
    sample = rival() if sys.argv[1] == "psutil" else agent(sys.argv[2], cold=sys.argv[1] == "cold")
    # Not `for line in sys.stdin`, which would keep lines back.
    while line := sys.stdin.readline():
        for _ in range(int(line.strip() or 1)):
            sample()
        print(flush=True)


if __name__ == "__main__":
    main()
