"""What nodes have, as they last said."""

from types import SimpleNamespace
from typing import Any

from jobsight.analyse.inventory import Inventory


def told(cpus: int | None, memory: int | None) -> Any:
    return SimpleNamespace(
        cluster="fox", node="n1", time=100.0, count=1, columns={"cpus": [cpus], "memory": [memory]}
    )


def test_two_words_of_one_instant_need_no_order() -> None:
    known = Inventory()
    for word in (told(8, None), told(8, 2**30), told(None, 2**30)):
        known.learn(word)
    assert known.at(told(1, 1)) == (8, 2**30)
