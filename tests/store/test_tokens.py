"""Tokens are kept the same way in a file and in a database."""

import os
import sqlite3
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from jobsight.ingest.token import Invite, Token
from jobsight.store.protocol import StoreError
from jobsight.store.tokens import StoredTokens, open_tokens
from tests.integration.postgres import Cluster
from tests.integration.postgres import cluster as cluster  # noqa: PLC0414

Open = Callable[[], StoredTokens]


class TokensContract:
    """Subclass with a fixture `place`: where they are."""

    @pytest.fixture
    def opened(self, place: str) -> Iterator[Open]:
        made: list[StoredTokens] = []

        def begin() -> StoredTokens:
            made.append(open_tokens(place))
            return made[-1]

        yield begin
        for one in made:
            one.close()

    def test_what_is_added_is_found_by_another_at_once(self, opened: Open) -> None:
        server, line = opened(), opened()
        assert not server.needed()
        token = Token("id1", "d1", "fox", None, 1.5, 2.5)
        line.add(token)
        assert server.needed()
        assert server.find("id1") == token
        assert server.find("id2") is None
        assert line.revoke("id1", 7.5)
        assert line.revoke("id1", 9.0)
        assert not line.revoke("id9", 9.0)
        assert server.find("id1") == token._replace(revoked=7.5)
        assert server.needed(), "a door that was closed stays closed"

    def test_an_invite_is_spent_so_often_and_together_with_its_token(self, opened: Open) -> None:
        one, other = opened(), opened()
        invite = Invite("in1", "d", "fox", "n1", 1.0, 2.0, 2, 3.0)
        one.add_invite(invite)
        assert other.find_invite("in1") == invite
        first = Token("id1", "d1", "fox", "n1", 1.0, invite="in1")
        assert one.spend(first)
        assert not other.spend(first._replace(id="id2")), "the same secret"
        assert other.find_invite("in1") == invite._replace(spent=1)
        assert other.spend(Token("id3", "d3", "fox", "n1", 1.0, invite="in1"))
        assert not one.spend(Token("id4", "d4", "fox", "n1", 1.0, invite="in1"))
        assert [token.id for token in one.tokens()] == ["id1", "id3"]
        assert one.traded("in1", "d1") == first
        assert one.traded("in2", "d1") is None

    def test_a_revoked_invite_buys_nothing(self, opened: Open) -> None:
        tokens = opened()
        tokens.add_invite(Invite("in1", "d", "fox", None, 1.0, None, 2))
        assert tokens.revoke("in1", 5.0)
        assert not tokens.spend(Token("id1", "d1", "fox", "n1", 1.0, invite="in1"))
        assert tokens.invites()[0].revoked == 5.0

    def test_the_last_use_only_moves_forward(self, opened: Open) -> None:
        tokens = opened()
        tokens.add(Token("id1", "d1", "fox", None, 1.0))
        tokens.touch({"id1": 5.5, "gone": 1.0})
        tokens.touch({"id1": 4.0})
        tokens.touch({})
        assert [token.used for token in tokens.tokens()] == [5.5]


class TestFile(TokensContract):
    @pytest.fixture
    def place(self, tmp_path: Path) -> str:
        return str(tmp_path)


class TestDatabase(TokensContract):
    @pytest.fixture
    def place(self, cluster: Cluster) -> str:
        return cluster.database()


def test_a_database_that_was_restarted_is_asked_again(cluster: Cluster) -> None:
    tokens = open_tokens(cluster.database())
    tokens.add(Token("id1", "d1", "fox", None, 1.0))
    cluster.stop()
    with pytest.raises(StoreError, match="database"):
        tokens.find("id1")
    cluster.start()
    assert tokens.find("id1") is not None
    tokens.close()


def test_no_store_and_a_newer_store_are_one_sentence(tmp_path: Path) -> None:
    with pytest.raises(StoreError, match=r"there is no store in .* yet"):
        open_tokens(str(tmp_path / "none"))
    open_tokens(str(tmp_path)).close()
    with sqlite3.connect(tmp_path / "tokens.sqlite") as file:
        file.execute("PRAGMA user_version = 99")
    file.close()
    with pytest.raises(StoreError, match="newer"):
        open_tokens(str(tmp_path))


def test_a_file_that_is_no_database_is_one_sentence(tmp_path: Path) -> None:
    (tmp_path / "tokens.sqlite").write_bytes(b"x" * 5000)
    with pytest.raises(StoreError, match="cannot use"):
        open_tokens(str(tmp_path))


def test_a_file_root_makes_belongs_to_whom_the_store_belongs_to(tmp_path: Path) -> None:
    if os.geteuid() != 0:
        sentence = "WHOSE THE TOKENS ARE IS NOT TESTED: ONLY ROOT CAN GIVE A FILE AWAY"
        if os.environ.get("CI") == "true":
            pytest.fail(sentence)
        pytest.skip(sentence)
    os.chown(tmp_path, 12345, 12346)
    open_tokens(str(tmp_path)).close()
    found: Any = (tmp_path / "tokens.sqlite").stat()
    assert (found.st_uid, found.st_gid, found.st_mode & 0o777) == (12345, 12346, 0o600)
