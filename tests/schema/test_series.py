"""Identifiers of time series: those of `uuidgen`, the same for the same labels and for no others."""

import uuid
from itertools import combinations

from hypothesis import given
from hypothesis import strategies as some

from jobsight.schema.series import new_namespace, series_id, series_name

NAMESPACE = uuid.UUID("2e79b8a1-c4fc-45ba-9023-d16fdce6e3fe")
LABELS = some.lists(some.none() | some.integers() | some.text(alphabet=":\\-aé", max_size=4), max_size=4)


def test_a_lustre_entry_has_the_identifier_that_uuidgen_gives_it() -> None:
    target, entry = "scratch-OST0001", "11317854:17627127:r01c01"
    found = series_id(NAMESPACE, f"{target}:{entry}")
    assert str(found) == "af854063-c381-585f-b551-ce0b6c4440a3"
    assert found == series_id(NAMESPACE, series_name([target, *entry.split(":")]))


@given(some.uuids(), some.text())
def test_identifiers_are_version_5_of_the_standard(namespace: uuid.UUID, name: str) -> None:
    assert series_id(namespace, name) == uuid.uuid5(namespace, name)


def test_different_labels_never_share_a_name() -> None:
    labels: list[list[object]] = [
        ["a", "b"], ["a:b"], ["a\\", "b"], ["a\\:b"], ["a", None, "b"], ["a", "", "b"], ["a", "\\-", "b"],
        ["a", "-", "b"], ["a", "b", ""],
    ]  # fmt: skip
    for one, other in combinations(labels, 2):
        assert series_name(one) != series_name(other)


@given(LABELS, LABELS)
def test_only_equal_labels_share_a_name(one: list[object], other: list[object]) -> None:
    texts = [[None if label is None else str(label) for label in labels] for labels in (one, other)]
    for labels in texts:
        while labels and labels[-1] is None:
            labels.pop()
    same = texts[0] == texts[1]
    # Nobody has no labels, and one empty one is not told apart from that.
    if [] not in texts:
        assert (series_name(one) == series_name(other)) == same


def test_a_label_that_a_record_gains_later_changes_no_name() -> None:
    assert series_name(["fox", "n1", 4711]) == series_name(["fox", "n1", 4711, None]) == "fox:n1:4711"


def test_every_site_has_a_namespace_of_its_own() -> None:
    assert new_namespace() != new_namespace()
    assert new_namespace().version == 4
