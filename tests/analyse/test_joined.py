"""Merged rows: a process that joins one brings all it ever used, which is no work done since."""

from jobsight.analyse.growth import Ident, Total, gains

PARENT = {Ident(9, 1.0): Total(1, 1.0, 0.0, 0, 0)}


def test_a_worker_that_joins_a_merged_row_brings_no_gain() -> None:
    before = {
        **PARENT,
        Ident(10, 2.0): Total(9, 2000.0, 0.0, 10, 10, True),
        Ident(12, 3.0): Total(9, 1000.0, 0.0, 5, 5),
    }
    after = {**PARENT, Ident(10, 2.0): Total(9, 3001.0, 0.0, 16, 16, True)}
    gain = gains(before, after)[Ident(10, 2.0)]
    assert (gain.cpu, gain.read, gain.written) == (1.0, 1, 1)


def test_an_oldest_worker_that_comes_back_to_its_row_brings_no_gain() -> None:
    before = {**PARENT, Ident(10, 2.0): Total(9, 500.0, 0.0, 0, 0), Ident(11, 2.0): Total(9, 1000.0, 0.0, 0, 0, True)}
    after = {**PARENT, Ident(10, 2.0): Total(9, 1502.0, 0.0, 0, 0, True)}
    assert gains(before, after)[Ident(10, 2.0)].cpu == 2.0
