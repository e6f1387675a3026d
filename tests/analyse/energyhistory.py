"""Three hours of one node with a card, of which everything is known: idle, then a job, then idle again."""

from collections.abc import Callable
from typing import Any

from jobsight.store.protocol import Store
from tests.store.contract import BOOT, _line, process_line

HOUR = 3600.0
START = (BOOT // HOUR + 1) * HOUR
CPUS, CORES, IDLE, CORE = 32, 16, 200.0, 10.0
CARD_IDLE, CARD_BUSY = 50.0, 350.0
# The job runs from here to there.
BEGIN, END = START + 1800.0, START + 5400.0
UNTIL = START + 3 * HOUR
EVERY = 60.0


def ran(time: float) -> float:
    """Seconds that the job had run by then."""
    return min(max(0.0, time - BEGIN), END - BEGIN)


def card(time: float) -> float:
    """What the card had taken since START."""
    return CARD_IDLE * (time - START) + (CARD_BUSY - CARD_IDLE) * ran(time)


def node(time: float) -> float:
    """What the node had taken, its card included."""
    return IDLE * (time - START) + CORE * CORES * ran(time) + card(time)


def lines(keep: Callable[[str, float], bool] = lambda *_: True) -> list[bytes]:
    """All messages but those that `keep` refuses."""
    found: list[bytes] = []

    def say(collector: str, time: float, rows: dict[str, Any]) -> None:
        if keep(collector, time):
            found.append(_line(collector, time, rows, "n1"))

    for turn in range(int((UNTIL - START) / EVERY) + 1):
        time = START + turn * EVERY
        if turn % 60 == 0:
            say(
                "hardware",
                time,
                {
                    "model": ["m"],
                    "cpus": [CPUS],
                    "memory": [2**38],
                    "system": ["s"],
                    "kernel": ["k"],
                    "architecture": ["x86_64"],
                },
            )
        watts = (node(time) - node(time - EVERY)) / EVERY
        say("ipmi", time, {"source": ["ipmi-dcmi"], "power": [watts], "age": [0.0]})
        there = BEGIN < time <= END
        say(
            "gpu",
            time,
            {
                "uuid": ["GPU-1"], "vendor": ["nvidia"], "energy": [1e6 + card(time)], "power_limit": [400.0],
                "scheduler": ["slurm" if there else None], "job": ["7" if there else None],
            },
        )  # fmt: skip
        if there and keep("process", time):
            found.append(
                process_line(
                    time, pid=700, started=BEGIN - BOOT, cpu_user=CORES * ran(time), scheduler="slurm", job="7",
                    owner="alice", command="train", memory_anon=2**30,
                )
            )  # fmt: skip
        elif keep("process", time):
            found.append(_line("process", time, {}, "n1"))
    # Those lines are of who samples every ten seconds.
    return [line.replace(b'"every": 10', b'"every": 60') for line in found]


def factor(time: float, grams: float, provider: str = "rte") -> bytes:
    rows = {"provider": [provider], "zone": ["FR"], "factor": [grams], "vintage": ["now"], "age": [0.0]}
    return _line("emissionfactor", time, rows, "server")


def load(store: Store, messages: list[bytes]) -> None:
    store.append(messages).result(30)
    store.digest()
