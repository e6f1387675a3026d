"""A simple batch system: first fit, urgent first, then oldest, what fits between may go ahead.

Nothing is given out twice.
"""

import heapq
from collections.abc import Iterable, Sequence
from itertools import count, islice
from math import inf
from operator import ge
from typing import NamedTuple

from jobsight.simulate.demand import Submission
from jobsight.simulate.draft import Ending
from jobsight.simulate.outage import Outage
from jobsight.simulate.site import Node, Site
from jobsight.simulate.truth import Place, Truth
from jobsight.simulate.work import Curve, cut, length

# Of a node's memory, what jobs can be given.
USABLE = 0.97
# So many waiting jobs of a partition are looked at, and none is let ahead of one that has waited so long,
# or is urgent and has waited a little.
DEPTH = 60
PATIENCE, URGENT = 4 * 3600.0, 900.0
FIRST = 480_001
END, UP, DOWN, SUBMIT = range(4)
"""What happens at one instant, in this order."""


class Held(NamedTuple):
    """What a job has of one node."""

    node: Node
    cores: tuple[int, ...]
    gpus: tuple[int, ...]


class Ticket(NamedTuple):
    """A job in the queue."""

    number: int
    array: int | None
    submission: Submission
    submit: float
    restarts: int


class Run(NamedTuple):
    """A job that runs."""

    ticket: Ticket
    start: float
    end: float
    held: tuple[Held, ...]


class Room:
    """What is left of one node."""

    def __init__(self, node: Node) -> None:
        self.node = node
        self.cores = list(range(node.make.cores))
        self.gpus = list(range(node.make.gpus))
        self.memory = int(USABLE * node.make.memory)
        self.up = True

    def fits(self, ticket: Ticket) -> bool:
        wanted = ticket.submission.draft
        return (
            self.up
            and len(self.cores) >= wanted.cores
            and self.memory >= wanted.memory
            and len(self.gpus) >= wanted.gpus
        )

    def take(self, ticket: Ticket) -> Held:
        wanted = ticket.submission.draft
        held = Held(self.node, tuple(self.cores[: wanted.cores]), tuple(self.gpus[: wanted.gpus]))
        del self.cores[: wanted.cores], self.gpus[: wanted.gpus]
        self.memory -= wanted.memory
        return held

    def give_back(self, held: Held, memory: int) -> None:
        self.cores = sorted([*self.cores, *held.cores])
        self.gpus = sorted([*self.gpus, *held.gpus])
        self.memory += memory


class Scheduler:
    """Plays a time of submissions and outages; `truths` is what came of it."""

    def __init__(self, site: Site, outages: Sequence[Outage]) -> None:
        self._rooms = {node.name: Room(node) for node in site.nodes if node.make.partition}
        self._partitions: dict[str, list[Room]] = {}
        for room in self._rooms.values():
            self._partitions.setdefault(room.node.make.partition, []).append(room)
        self._queues: dict[str, list[Ticket]] = {name: [] for name in self._partitions}
        self._running: dict[int, Run] = {}
        self._events: list[tuple[float, int, int, object]] = []
        self._order = count()
        self.truths: list[Truth] = []
        for outage in outages:
            if outage.node in self._rooms:
                self._at(outage.begin, DOWN, outage.node)
                self._at(outage.end, UP, outage.node)

    def play(self, submissions: Iterable[Submission], until: float) -> list[Truth]:
        """All that happens until then; jobs that run at that time end as they would if nothing else happened."""
        arrays: dict[int, int] = {}
        for number, one in enumerate(submissions, FIRST):
            array = None if one.array is None else arrays.setdefault(one.array, number)
            self._at(one.time, SUBMIT, Ticket(number, array, one, one.time, 0))
        while self._events and self._events[0][0] <= until:
            self._happen(*heapq.heappop(self._events))
        for run in list(self._running.values()):
            self._finish(run, run.end, self._ending(run))
        for queue in self._queues.values():
            self.truths += [_truth(ticket, inf, inf, Ending("PENDING"), ()) for ticket in queue]
        return sorted(self.truths, key=lambda truth: (truth.submit, truth.number))

    def _at(self, time: float, what: int, whom: object) -> None:
        heapq.heappush(self._events, (time, what * 2**40 + next(self._order), what, whom))

    def _happen(self, time: float, _: int, what: int, whom: object) -> None:
        if what == SUBMIT and isinstance(whom, Ticket):
            queue = self._queues[whom.submission.draft.partition]
            queue.insert(0 if whom.submission.urgent else len(queue), whom)
            if len(queue) <= DEPTH or whom.submission.urgent:
                self._start_some(whom.submission.draft.partition, time)
        elif what == END and isinstance(whom, Run):
            if self._running.get(whom.ticket.number) is whom:
                self._finish(whom, time, self._ending(whom))
                self._start_some(whom.ticket.submission.draft.partition, time)
        elif isinstance(whom, str):
            self._rooms[whom].up = what == UP
            if what == DOWN:
                self._fail(whom, time)
            self._start_some(self._rooms[whom].node.make.partition, time)

    def _fail(self, node: str, time: float) -> None:
        for run in [run for run in self._running.values() if any(held.node.name == node for held in run.held)]:
            self._finish(run, time, Ending("NODE_FAIL", 1))
            if run.ticket.submission.draft.requeue:
                again = run.ticket._replace(submit=time, restarts=run.ticket.restarts + 1)
                self._at(time + 120.0, SUBMIT, again)

    def _start_some(self, partition: str, time: float) -> None:
        rooms, queue = self._partitions[partition], self._queues[partition]
        left: list[Ticket] = []
        refused: list[tuple[int, int, int, int]] = []
        for place, ticket in enumerate(queue):
            if len(left) >= DEPTH or (left and _blocks(left[0], time)):
                left += queue[place:]
                break
            wanted = _wanted(ticket)
            # Rooms only get fuller: who wants as much as one that did not fit does not fit either.
            hopeless = any(all(map(ge, wanted, less)) for less in refused)
            fit = [] if hopeless else list(islice((room for room in rooms if room.fits(ticket)), wanted[0]))
            if len(fit) < wanted[0]:
                left.append(ticket)
                if not hopeless:
                    refused.append(wanted)
                continue
            self._start(ticket, time, fit)
        self._queues[partition] = left

    def _start(self, ticket: Ticket, time: float, rooms: list[Room]) -> None:
        draft = ticket.submission.draft
        start = time + 1.0
        end = start + min(length(draft.phases), draft.limit)
        run = Run(ticket, start, end, tuple(room.take(ticket) for room in rooms))
        self._running[ticket.number] = run
        self._at(end, END, run)

    def _finish(self, run: Run, time: float, ending: Ending) -> None:
        del self._running[run.ticket.number]
        for held in run.held:
            self._rooms[held.node.name].give_back(held, run.ticket.submission.draft.memory)
        end = max(time, run.start + 1.0)
        self.truths.append(_truth(run.ticket, run.start, end, ending, run.held))

    def _ending(self, run: Run) -> Ending:
        draft = run.ticket.submission.draft
        return Ending("TIMEOUT") if length(draft.phases) > draft.limit else draft.ending


def _wanted(ticket: Ticket) -> tuple[int, int, int, int]:
    draft = ticket.submission.draft
    return draft.nodes, draft.cores, draft.memory, draft.gpus


def _blocks(ticket: Ticket, time: float) -> bool:
    return time - ticket.submit > (URGENT if ticket.submission.urgent else PATIENCE)


def _truth(ticket: Ticket, start: float, end: float, ending: Ending, held: tuple[Held, ...]) -> Truth:
    one = ticket.submission
    phases = cut(one.draft.phases, end - start) if held else ()
    shares = one.draft.shares if held and one.draft.shares else (1.0,) * len(held)
    places = [
        Place(h.node, h.cores, h.gpus, Curve(start, phases, one.draft.memory, share))
        for h, share in zip(held, shares, strict=True)
    ]
    return Truth(
        scheduler="slurm",
        number=str(ticket.number),
        array=None if ticket.array is None else str(ticket.array),
        task=one.task,
        user=one.user,
        draft=one.draft,
        submit=ticket.submit,
        start=start,
        end=end,
        ending=ending,
        restarts=ticket.restarts,
        places=tuple(places),
    )
