"""A change to rows that may be in files: a file that loses some is written anew without them."""

from typing import TYPE_CHECKING

import duckdb

from jobsight.store.plan import Piece

if TYPE_CHECKING:
    from jobsight.store.cold import Cold


class Amend:
    """A change under way: the cursor it is made with, and what became of files."""

    def __init__(self, cold: "Cold", cursor: duckdb.DuckDBPyConnection, table: str, pieces: list[Piece]) -> None:
        self.cursor = cursor
        self.made: list[str] = []
        self.replaced: list[Piece] = []
        self._cold, self._table, self._pieces = cold, table, pieces

    def without(self, condition: str) -> None:
        """Take out the rows that fulfil a condition."""
        for piece in self._pieces:
            if self._cold.matching(self.cursor, piece, condition):
                self.replaced.append(piece)
                if file := self._cold.rewrite(self.cursor, piece, condition):
                    self.made.append(file)
        self.cursor.execute(f"DELETE FROM main.{self._table} WHERE {condition}")
