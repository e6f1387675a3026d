"""The stats server's command line, as its documentation has it."""

import argparse

import pytest

from jobsight.compat import batchflags
from jobsight.settings import Settings


def read(*arguments: str) -> tuple[Settings, list[str]]:
    accept = argparse.ArgumentParser()
    batchflags.add(accept)
    given = accept.parse_args(list(arguments))
    return batchflags.applied(Settings(), given), batchflags.remarks(given)


def test_the_flags_of_its_examples_are_settings_here() -> None:
    settings, said = read(
        "--slurm.sacct.path=/usr/local/bin/sacct", "--batch.scheduler.slurm", "--path.data=/var/lib/batchjob_stats",
        "--db.update.interval=30m", "--data.retention.period=1y", "--log.level=debug", "--web.admin-users=ada,bob",
        "--web.admin-users", "carol", "--slurm.elapsed.time.cutoff=1m", "--web.listen-address=:9020",
    )  # fmt: skip
    assert settings.store.path == "/var/lib/batchjob_stats"
    assert settings.store.keep_jobs == 365 * 86400.0
    assert settings.serve.access is not None
    assert settings.serve.access.admins == ("ada", "bob", "carol")
    assert settings.serve.stats.shortest == 60.0
    assert settings.serve.listen == "0.0.0.0:9020"
    assert [text.partition(" ")[0] for text in said] == [
        "--db.update.interval", "--slurm.sacct.path", "--batch.scheduler.slurm", "--log.level",
    ]  # fmt: skip


def test_both_spellings_of_the_data_path_are_one() -> None:
    assert read("--data.path=/a")[0].store.path == read("--path.data", "/a")[0].store.path == "/a"


def test_no_flag_changes_nothing() -> None:
    assert read() == (Settings(), [])


def test_a_value_that_cannot_be_names_its_flag() -> None:
    with pytest.raises(ValueError, match=r"--data.retention.period: expected a duration"):
        read("--data.retention.period=long")
