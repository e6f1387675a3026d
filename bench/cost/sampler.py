"""One contender: a resident sampler that takes one sample for each line on standard input.

    sampler.py agent SETTINGS.json     the agent with the process collector and the sink the settings name
    sampler.py psutil                  psutil's process_iter

Answers with a line of JSON: the CPU time of this whole process since the last answer, all threads included, so that
what a sink does in the background is counted too.
"""

import json
import os
import sys
import time
from collections.abc import Callable


def agent(file: str) -> Callable[[], None]:
    from jobsight.agent.service import Agent, open_sinks, settle
    from jobsight.clock import SystemClock
    from jobsight.host import Host
    from jobsight.settings import from_values

    with open(file) as text:
        settings = from_values(json.load(text))
    host, clock = Host(), SystemClock()
    settle()
    return Agent(settings, host, clock, open_sinks(settings, host, clock)).step


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
    sample = agent(sys.argv[2]) if sys.argv[1] == "agent" else rival()
    spent = time.process_time()
    for _ in sys.stdin:
        sample()
        before, spent = spent, time.process_time()
        print(json.dumps({"cpu": spent - before}), flush=True)


if __name__ == "__main__":
    main()
