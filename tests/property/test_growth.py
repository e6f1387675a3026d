"""Growth and gains against a simulated machine whose truth is known to the nanosecond."""

import random
from dataclasses import dataclass, field

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from jobsight.analyse.growth import Ident, Total, gains, growth

# A busy machine is no reason to fail.
calm = settings(max_examples=80, deadline=None, suppress_health_check=[HealthCheck.too_slow])
totals = st.lists(st.integers(0, 10**15), max_size=30)


@calm
@given(totals)
def test_growth_is_never_negative_and_at_least_what_ends_show(values: list[int]) -> None:
    assert growth(values) >= 0
    if values:
        assert growth(values) >= values[-1] - values[0]


@calm
@given(totals, st.integers(0, 29))
def test_growth_over_adjacent_windows_adds_up(values: list[int], cut: int) -> None:
    assert growth(values[: cut + 1]) + growth(values[cut:]) == growth(values)


@calm
@given(totals)
def test_growth_of_a_counter_without_resets_is_its_difference(values: list[int]) -> None:
    values.sort()
    assert growth(values) == (values[-1] - values[0] if values else 0)


TICK = 10_000_000
INIT = 1


@dataclass
class Task:
    """One process as the kernel keeps it: times in nanoseconds."""

    pid: int
    started: int
    parent: int
    ignores: bool = False
    """Whether it ignores SIGCHLD: its children then vanish, and nobody inherits their time."""
    cpu: int = 0
    children: int = 0
    zombie: bool = False


@dataclass
class Kernel:
    """A machine: spawn, burn, exit, wait. Init waits for every orphan at once, and all do where they are `prompt`."""

    prompt: bool = False
    tasks: dict[int, Task] = field(default_factory=lambda: {INIT: Task(INIT, 0, 0)})
    clock: int = 0
    burned: int = 0
    born: int = 1

    def spawn(self, parent: Task, *, ignores: bool) -> None:
        # The lowest free number: reused as soon as it can be, with a new start time.
        pid = next(number for number in range(INIT, 10_000) if number not in self.tasks)
        self.clock += 1
        self.born += 1
        self.tasks[pid] = Task(pid, self.clock, parent.pid, ignores)

    def burn(self, task: Task, time: int) -> None:
        task.cpu += time
        self.burned += time

    def exit(self, task: Task) -> None:
        for child in [child for child in self.tasks.values() if child.parent == task.pid]:
            child.parent = INIT
            if child.zombie:
                self.wait(child)
        if self.tasks[task.parent].ignores:
            del self.tasks[task.pid]
            return
        task.zombie = True
        if task.parent == INIT or self.prompt:
            self.wait(task)

    def wait(self, child: Task) -> None:
        self.tasks[child.parent].children += child.cpu + child.children
        del self.tasks[child.pid]

    def sample(self) -> dict[Ident, Total]:
        """As /proc shows it: whole ticks."""
        return {
            Ident(task.pid, float(task.started)): Total(
                task.parent, task.cpu // TICK / 100, task.children // TICK / 100, 0, 0
            )
            for task in self.tasks.values()
        }


Action = tuple[str, int, int]
KINDS = ("spawn", "spawn", "burn", "burn", "exit", "wait", "sample")


@st.composite
def stories(draw: st.DrawFn) -> list[Action]:
    """What happens on the machine. From a seed: deep trees need hundreds of actions, too many to draw one by one."""
    dice = random.Random(draw(st.integers(0, 2**32)))
    return [
        (dice.choice(KINDS), dice.randrange(1000), dice.randrange(400 * TICK)) for _ in range(dice.randrange(5, 200))
    ]


@dataclass
class Story:
    """What was really used, what we made of the samples, and by how much ticks may blur it."""

    truth: float
    counted: float
    observed: float
    blur: float


def play(steps: list[Action], *, ignoring: bool, orphans: bool, prompt: bool = False) -> Story:
    kernel = Kernel(prompt)
    before: dict[Ident, Total] = {}
    best: dict[Ident, float] = {}
    counted = truth = 0.0
    for action, choice, amount in [*steps, ("sample", 0, 0)]:
        living = [task for task in kernel.tasks.values() if not task.zombie]
        task = living[choice % len(living)]
        match action:
            case "spawn":
                kernel.spawn(task, ignores=ignoring and amount % 3 == 0)
            case "burn":
                kernel.burn(task, amount)
            case "exit":
                has_children = any(child.parent == task.pid for child in kernel.tasks.values())
                if task.pid != INIT and (orphans or not has_children):
                    kernel.exit(task)
            case "wait":
                for child in [child for child in kernel.tasks.values() if child.zombie and child.parent == task.pid]:
                    kernel.wait(child)
            case "sample":
                after = kernel.sample()
                counted += sum(gain.cpu for gain in gains(before, after).values())
                best |= {ident: total.cpu for ident, total in after.items()}
                before, truth = after, kernel.burned / TICK / 100
    # Each of the two times of each process is cut to a tick; over the samples of one process the cuts cancel.
    return Story(truth, counted, sum(best.values()), 0.021 * kernel.born)


@calm
@given(stories())
def test_gains_add_up_to_everything_that_was_used(steps: list[Action]) -> None:
    story = play(steps, ignoring=False, orphans=False)
    assert story.counted == pytest.approx(story.truth, abs=story.blur)


@calm
@given(stories())
def test_gains_never_exceed_the_truth_where_parents_ignore_their_children(steps: list[Action]) -> None:
    story = play(steps, ignoring=True, orphans=False)
    assert story.counted <= story.truth + story.blur


@calm
@given(stories())
def test_gains_never_exceed_the_truth_where_children_are_orphaned(steps: list[Action]) -> None:
    story = play(steps, ignoring=False, orphans=True, prompt=True)
    assert story.counted <= story.truth + story.blur


@calm
@given(stories())
def test_no_gain_is_negative_whatever_happens(steps: list[Action]) -> None:
    story = play(steps, ignoring=True, orphans=True)
    assert story.counted >= 0
    assert story.observed <= story.truth + story.blur
