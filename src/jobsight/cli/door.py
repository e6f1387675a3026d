"""Where `jobsight load` hands messages in: a store that is free, the server that owns it, or a database."""

import json
import time
from typing import TYPE_CHECKING, NamedTuple, Protocol

from jobsight.cli.arguments import FailedError
from jobsight.metering import USUAL, Energy
from jobsight.serving import Lustre
from jobsight.settings import Settings

if TYPE_CHECKING:
    from jobsight.show.notice import Notice

TRIES = 20
PATIENCE = 120.0


class Handed(NamedTuple):
    """What became of messages."""

    new: int | None
    """None if only the server knows."""
    refused: int = 0


class Door(Protocol):
    """Where messages go."""

    def hand_in(self, lines: list[bytes]) -> Handed:
        """Make them durable."""

    def reconsider(self) -> int:
        """Have the store try again what it set aside in itself; how many messages."""

    def finish(self) -> None:
        """Count what came after later messages of its node, where no server does."""

    def close(self) -> None: ...


class Direct:
    """A store that nobody else has open."""

    def __init__(self, path: str, energy: Energy = USUAL, lustre: Lustre | None = None) -> None:
        from jobsight.analyse.keeper import open_store

        self._energy, self._lustre = energy, lustre
        self._store = open_store(path)
        # What a server had acknowledged and not yet loaded when it stopped.
        self._store.digest()

    def hand_in(self, lines: list[bytes]) -> Handed:
        self._store.append(lines).result()
        return Handed(self._store.digest())

    def reconsider(self) -> int:
        return 0

    def finish(self) -> None:
        from jobsight.analyse.chronicle import catch_up
        from jobsight.analyse.tending import settle

        settle(self._store, time.time(), self._lustre, self._energy)
        while catch_up(self._store, time.time()):
            """Some days at a time."""

    def close(self) -> None:
        self._store.close()


class Database:
    """A database, which many may have open. A server digests what comes in; where none runs, we do."""

    def __init__(self, url: str, energy: Energy = USUAL, lustre: Lustre | None = None) -> None:
        from jobsight.analyse.keeper import open_database

        self._energy, self._lustre = energy, lustre
        self._store = open_database(url)

    def hand_in(self, lines: list[bytes]) -> Handed:
        self._store.append(lines).result()
        self._store.digest()
        return Handed(None)

    def reconsider(self) -> int:
        count = self._store.reconsider()
        self._store.digest()
        return count

    def finish(self) -> None:
        from jobsight.analyse.chronicle import catch_up
        from jobsight.analyse.tending import settle

        settle(self._store, time.time(), self._lustre, self._energy)
        while catch_up(self._store, time.time()):
            """Some days at a time."""

    def close(self) -> None:
        self._store.close()


class Remote:
    """The server that owns the store."""

    def __init__(self, server: "Notice", token: str) -> None:
        from jobsight.ship.post import Poster, address

        self._url = server.url
        self._post = Poster(address(f"{server.url}/ingest"), PATIENCE, server.tls())
        self._headers = {"Content-Type": "application/x-ndjson", "Content-Encoding": "gzip"}
        if token:
            self._headers["Authorization"] = f"Bearer {token}"

    def hand_in(self, lines: list[bytes]) -> Handed:
        from jobsight.schema.wire import compress

        body = compress(b"\n".join(lines) + b"\n")
        for _ in range(TRIES):
            try:
                answer = self._post.post(body, self._headers)
            except OSError as error:
                raise FailedError(f"the server at {self._url} does not answer: {error}; run again to go on") from None
            if answer.status not in (429, 503):
                break
            wait = answer.headers.get("retry-after", "")
            time.sleep(min(60.0, float(wait)) if wait.isdecimal() else 1.0)
        if answer.status == 401:
            raise FailedError(f"the server at {self._url} needs a token: name its settings with --settings")
        if answer.status != 200:
            said = answer.body.decode("utf-8", "replace")[:200]
            raise FailedError(f"the server at {self._url} answered {answer.status}: {said}; run again to go on")
        # Both sides check alike, so a server refuses something only if it is another version.
        return Handed(None, json.loads(answer.body).get("refused", 0))

    def reconsider(self) -> int:
        return 0

    def finish(self) -> None:
        """The server does it by itself."""

    def close(self) -> None:
        self._post.close()


class Nowhere:
    """For `--dry-run`."""

    def hand_in(self, lines: list[bytes]) -> Handed:  # noqa: ARG002
        return Handed(None)

    def reconsider(self) -> int:
        return 0

    def finish(self) -> None: ...

    def close(self) -> None: ...


def open_door(settings: Settings) -> Door:
    from jobsight import files
    from jobsight.show import notice
    from jobsight.store.protocol import StoreError

    path, token_file = settings.store.path, settings.serve.token_file
    try:
        if settings.store.url:
            files.make_directory(path)
            return Database(settings.store.url, settings.energy, settings.serve.lustre)
        return Direct(path, settings.energy, settings.serve.lustre)
    except StoreError as error:
        server = notice.read(path)
        if settings.store.url or server is None:
            raise FailedError(str(error)) from None
        token = files.read_at(token_file, 0, 4096).decode("ascii", "replace").strip() if token_file else ""
        return Remote(server, token or notice.token(path))
