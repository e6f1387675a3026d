"""Sum over jobs + system + idle = node energy, whatever happens on the node."""

from random import Random
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from jobsight.analyse.attribution import IDLE, JOB, Demand, Owned, Spell, attribute
from jobsight.analyse.emissions import Factors, Prices
from jobsight.analyse.energy import Taking, Worth, rows
from jobsight.analyse.holding import Lives, divided
from jobsight.analyse.meter import Bins, Reading, carded, counted, metered, together
from jobsight.analyse.nodetime import Nodetime
from jobsight.analyse.sources import Sources, Use
from jobsight.metering import Energy, Model
from jobsight.schema.record import fields_of
from jobsight.schema.sqltable import STAMP

# A busy machine is no reason to fail.
calm = settings(max_examples=120, deadline=None, suppress_health_check=[HealthCheck.too_slow])
# Each story is two hours of samples.
few = settings(calm, max_examples=100)
NAMES = [*STAMP, *(field.name for field in fields_of(Taking))]
HOUR = 3600.0

amounts = st.floats(0.0, 1e9, allow_nan=False)
keys = st.sampled_from(["a", "b", "c", "d"])
demands = st.dictionaries(keys, st.tuples(amounts, amounts, amounts), max_size=4)
owned = st.lists(st.tuples(st.one_of(st.none(), keys), amounts, st.booleans()), max_size=6)


@calm
@given(
    demands,
    owned,
    amounts,
    amounts,
    st.one_of(st.none(), st.floats(0.0, 5000.0)),
    st.floats(0.0, 1.0),
    st.one_of(st.none(), st.floats(1, 256)),
    st.sampled_from(["activity", "cpu_time"]),
)
def test_both_figures_add_up_to_what_the_node_took(
    jobs: Any, cards: Any, energy: float, system: float, baseline: Any, memory: float, cpus: Any, method: str
) -> None:
    spell = Spell(
        seconds=300.0,
        energy=energy,
        cards=[Owned(*card) for card in cards],
        jobs=[Demand(key, *amounts) for key, amounts in jobs.items()],
        system=system,
        cpus=cpus,
        baseline=baseline,
        memory_part=memory,
    )
    found = attribute(spell, method)
    for name in ("energy", "energy_full"):
        parts = [getattr(part, name) for part in found]
        assert min(parts) >= -1e-9 * max(energy, 1.0)
        assert sum(parts) == pytest.approx(energy, rel=1e-9, abs=1e-9)
    assert [part.what for part in found].count(IDLE) == 1
    for part in found:
        assert part.energy_full >= part.energy or part.what == IDLE


def test_the_simple_method_is_the_nodes_energy_times_the_share_of_cpu_time() -> None:
    spell = Spell(300.0, 90_000.0, [Owned("b", 10_000.0)], [Demand("a", 600.0), Demand("b", 200.0)], system=200.0)
    found = {part.key or part.what: part.energy for part in attribute(spell, "cpu_time")}
    assert found == pytest.approx({"a": 54_000.0, "b": 18_000.0, "system": 18_000.0, "idle": 0.0})


def test_idle_power_is_shared_by_the_cpus_held_and_cards_by_who_holds_them() -> None:
    jobs = [Demand("a", 300.0, held=16 * 300.0), Demand("b", 0.0, held=8 * 300.0)]
    cards = [Owned("b", 15_000.0), Owned(None, 6_000.0)]
    spell = Spell(300.0, 81_000.0, cards, jobs, system=100.0, cpus=32.0, baseline=160.0)
    found = {part.key or part.what: part for part in attribute(spell)}
    # 81 kJ less 21 of cards less 48 that it takes anyway: 12 kJ of work.
    assert {name: part.energy for name, part in found.items()} == pytest.approx(
        {"a": 9_000.0, "b": 15_000.0, "system": 3_000.0, "idle": 54_000.0}
    )
    assert {name: part.energy_full for name, part in found.items()} == pytest.approx(
        {"a": 33_000.0, "b": 27_000.0, "system": 3_000.0, "idle": 18_000.0}
    )


job_lives = st.lists(
    st.tuples(st.floats(-HOUR, 2 * HOUR), st.floats(1.0, 2 * HOUR), st.integers(1, 16), st.integers(0, 3)), max_size=6
)


class Story:
    """Two hours of a node with cards: jobs come and go and move between cards, meters are reset, samples are lost."""

    def __init__(self, lives: Any, chance: Any, *, meter: bool, counters: bool) -> None:
        self.until = 2 * HOUR
        self.documents = [
            {"key": f"k{n}", "cluster": "c", "scheduler": "slurm", "id": str(n), "number": str(n), "scope": "",
             "started": start, "seen": start + seconds}
            for n, (start, seconds, _, _) in enumerate(lives)
        ]  # fmt: skip
        self.lives = Lives(self.documents)
        self.told = Sources(0.0, self.until)
        self.told.cpus, self.told.model = 16.0, "m"
        times = [turn * 60.0 for turn in range(-5, 126)]
        for n, (start, seconds, cpus, _) in enumerate(lives):
            use = self.told.jobs.setdefault(f"k{n}", Use(self.told.bins().number))
            for place, inside in self.told.bins().places(start, start + seconds):
                use.seconds[place] += inside
                use.cpu[place] += cpus * inside * chance.random()
                use.memory[place] += inside * 1e9
                use.held[place] += cpus * inside
        for card in range(2):
            self._card(card, lives, [time for time in times if chance.random() > 0.2], chance)
        if meter:
            looks = [(time, 300.0 + 900 * chance.random()) for time in times if chance.random() > 0.3]
            self.told.meter, self.told.meter_name = self.told.bins().add(metered(looks, 3000.0)), "ipmi"
        if counters:
            self.told.counters = together([self._zone(times, chance) for _ in range(2)])
            self.told.memory = self._zone(times, chance)

    def _card(self, card: int, lives: Any, times: list[float], chance: Any) -> None:
        counter, seen = 0.0, []
        for time in times:
            counter = 0.0 if chance.random() < 0.05 else counter + 60.0 * 350 * chance.random()
            holder = next(
                (n for n, (start, seconds, _, at) in enumerate(lives)
                 if start <= time < start + seconds and (at + int(time // 1800)) % 3 == card),
                None,
            )  # fmt: skip
            name = None if holder is None else ("slurm", str(holder))
            seen.append((Reading(time, counter, 350 * chance.random(), 400.0), name))
        by_time = dict(seen_at(seen))
        spans = []
        for span in carded([reading for reading, _ in seen]):
            ends = [self.lives.of("c", "n", by_time[time], time) for time in (span.start, span.end)]
            spans.append((span, divided(span, *ends)))
        if spans:
            self.told.cards.append((self.told.bins().add(span for span, _ in spans), spans))

    def _zone(self, times: list[float], chance: Any) -> Bins:
        total, looks = 0.0, []
        for time in times:
            total = 0.0 if chance.random() < 0.03 else total + 60.0 * 200 * chance.random()
            if chance.random() > 0.3:
                looks.append((time, total % 65532.6, 65532.6))
        return self.told.bins().add(counted(looks, 700.0))


def seen_at(seen: list[tuple[Reading, Any]]) -> list[tuple[float, Any]]:
    return [(reading.time, name) for reading, name in seen]


@few
@given(job_lives, st.integers(0, 2**32), st.booleans(), st.booleans(), st.booleans(), st.booleans())
def test_the_law_holds_in_every_hour_of_any_story(
    lives: Any, seed: int, meter: bool, counters: bool, model: bool, simple: bool
) -> None:
    story = Story(lives, Random(seed), meter=meter, counters=counters)
    options = Energy(model={"*": Model(100.0, 500.0)} if model else {}, method="cpu_time" if simple else "activity")
    node = Nodetime(("c", "n"), story.told, story.lives.loose, {}, options)
    worth = Worth(Factors([], options), Prices(options))
    made = [dict(zip(NAMES, row, strict=True)) for row in rows(node, worth, options)]
    for hour in (0.0, HOUR):
        some = [row for row in made if row["time"] == hour]
        whole = sum(row["whole"] or 0.0 for row in some)
        steps = [
            node.steps[step].energy for step in range(len(node.steps)) if node.begin(step) // HOUR * HOUR == hour
        ]
        assert whole == pytest.approx(sum(steps), rel=1e-12)
        # Where only cards are measured nothing is known of other jobs; they have no row, and no energy.
        for name in ("energy", "energy_full"):
            assert sum(row[name] for row in some) == pytest.approx(whole, rel=1e-9, abs=1e-9)
        for row in some:
            assert row["covered"] <= row["seconds"] + 1e-6
            assert row["part"] == JOB or row["job_key"] == ""
            assert row["energy"] >= -1e-9 * max(1.0, whole)
