"""Addresses of databases: one that is wrong is told without what may be its password."""

import pytest

from jobsight.analyse.keeper import open_database
from jobsight.store.pool import place
from jobsight.store.protocol import StoreError
from jobsight.store.tokens import open_tokens

WRONG = "postgresql://ada:50%secret@db.example/jobs"


@pytest.mark.parametrize("opened", [open_database, open_tokens])
def test_an_address_that_is_none_is_one_sentence_without_the_password(opened: object) -> None:
    with pytest.raises(StoreError, match="expected an address such as postgresql://USER@HOST/DATABASE") as caught:
        opened(WRONG)  # type: ignore[operator]
    assert "secret" not in str(caught.value)
    assert caught.value.__suppress_context__


def test_a_database_is_called_by_its_name_and_not_by_its_password() -> None:
    assert place("postgresql://ada:secret@db.example/jobs") == "database jobs on db.example"
    assert place(WRONG) == "database"
