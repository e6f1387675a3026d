"""How quickly commands become programs, against a plain loop over the expressions.

    python bench/programs_speed.py [--rows 1000000] [--commands 20000]

A million rows of 20 000 different commands: some the starter map knows by name, some by expression, most by nothing,
as users' own programs are. Two rivals have the same map and must come to the same answers; they are timed on a part
of the rows. One tries every rule as a compiled expression, one after the other; the other has the exact names in a
table and only then tries the expressions. Ends with 1 if the map is slower than a million rows a second once warm, or
than 20 times the quicker rival.
"""

import argparse
import random
import re
import sys
import time

from jobsight.analyse.programmap import STARTER, Maps, parse

TARGET, TIMES = 1_000_000, 20


def commands(count: int, chance: random.Random) -> list[str]:
    """Different commands: a third of them of programs there are."""
    with open(STARTER, encoding="utf-8") as file:
        rules = parse(file.read(), STARTER)
    known = [rule.command[:15] for rule in rules if rule.kind == "exact"]
    found = dict.fromkeys(known)
    while len(found) < count // 3:
        found[f"python3.{chance.randrange(10_000)}"] = None
    while len(found) < count:
        found[f"{chance.choice(('run', 'sim', 'my', 'calc'))}_{chance.randrange(10**6)}"] = None
    return list(found)[:count]


def rival(rows: list[str], *, table: bool) -> tuple[float, list[str | None]]:
    """Rules in the order in which they count, tried on each row: seconds a row, and the answers."""
    with open(STARTER, encoding="utf-8") as file:
        rules = sorted(parse(file.read(), STARTER), key=lambda rule: rule.kind != "exact")
    exact: dict[str, str] = {}
    for rule in rules if table else ():
        if rule.kind == "exact":
            exact.setdefault(rule.command[:15], rule.program.name)
    plain = [
        (re.compile(rule.command if rule.kind == "regex" else re.escape(rule.command[:15])), rule.program.name)
        for rule in rules
        if rule.kind == "regex" or not table
    ]
    begin = time.perf_counter()
    found = [
        exact.get(row) or next((name for pattern, name in plain if pattern.fullmatch(row)), None) for row in rows
    ]
    return (time.perf_counter() - begin) / len(rows), found


def main() -> int:
    asked = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    asked.add_argument("--rows", type=int, default=1_000_000)
    asked.add_argument("--commands", type=int, default=20_000)
    given = asked.parse_args()
    chance = random.Random(1)
    names = commands(given.commands, chance)
    rows = chance.choices(names, k=given.rows)
    known = Maps().current()
    begin = time.perf_counter()
    known.programs(names)
    cold = time.perf_counter() - begin
    warm = []
    for _ in range(3):
        begin = time.perf_counter()
        found = known.programs(rows)
        warm.append(time.perf_counter() - begin)
    part = rows[: max(1, given.rows // 200)]
    (slow, every), (plain, some) = rival(part, table=False), rival(part, table=True)
    if not [program and program.name for program in found[: len(part)]] == every == some:
        print("they do not agree")
        return 1
    pace, times = given.rows / min(warm), plain * given.rows / min(warm)
    print(f"{given.rows} rows of {len(names)} commands, {sum(one is None for one in found)} in no map")
    print(f"the map, cold, {len(names)} commands: {1000 * cold:.0f} ms")
    print(f"the map, warm: {1000 * min(warm):.0f} ms, {pace / 1e6:.1f} M rows/s ({TARGET / 1e6:.0f} M wanted)")
    print(f"a loop over all rules: {slow * given.rows:.1f} s, by {len(part)} of the rows")
    print(f"a table of names and a loop over expressions: {plain * given.rows:.1f} s, by as many")
    print(f"the map is {slow / plain * times:.0f} and {times:.0f} times as quick ({TIMES} wanted)")
    return 0 if pace >= TARGET and times >= TIMES else 1


if __name__ == "__main__":
    sys.exit(main())
