"""The right to digest, which one server has at a time: an advisory lock of PostgreSQL.

The lock belongs to the connection on which batches are committed. Whoever has lost the one has lost the other, so a
server that was thought dead and comes back can do no harm; and when a server is killed the next one has the lock as
soon as the database sees that the connection is gone.
"""

from contextlib import suppress

import psycopg

from jobsight.store.pool import Connection, connect

LOCK = "SELECT pg_try_advisory_lock(hashtext('digest'), hashtext(current_schema()))"

# A server whose machine lost power says no farewell, and one that hangs says nothing: the database must find out.
WATCH = """SELECT set_config('tcp_keepalives_idle', '30', false), set_config('tcp_keepalives_interval', '10', false),
set_config('tcp_keepalives_count', '3', false), set_config('idle_in_transaction_session_timeout', '5min', false)"""


class Lease:
    """One connection, and whether it has the lock. Not thread-safe: its owner takes turns."""

    def __init__(self, url: str) -> None:
        self._url = url
        self._connection: Connection | None = None
        self.held = False

    def connection(self) -> Connection | None:
        """The connection that has the lock; None while another server has it."""
        if self._connection is None:
            self._connection = connect(self._url)
            self._connection.execute(WATCH)
        if not self.held:
            found = self._connection.execute(LOCK).fetchone()
            self.held = bool(found and found[0])
        return self._connection if self.held else None

    def release(self) -> None:
        self.held = False
        if self._connection is not None:
            # The lock goes with the connection, but the server may take its time to see that this is closed.
            with suppress(psycopg.Error):
                self._connection.execute("SELECT pg_advisory_unlock_all()")
            self._connection.close()
        self._connection = None
