"""Where the command line reads from: the store itself, or the server that owns it. The user does not notice."""

import json
import os
import time
from collections.abc import Callable
from typing import Any, Protocol
from urllib.error import HTTPError, URLError
from urllib.parse import quote, urlencode

from jobsight.analyse.keeper import open_database, open_store
from jobsight.serving import Stray
from jobsight.settings import DATABASES, home
from jobsight.show import notice
from jobsight.show.api import Filter
from jobsight.show.views import View
from jobsight.store.protocol import Store, StoreError

# Where a server that root runs keeps its store.
SYSTEM = "/var/lib/jobsight/store"


class Reader(Protocol):
    """What the verbs ask for."""

    def jobs(self, **filters: Any) -> list[dict[str, Any]]:
        """Jobs by the filters of `show.api.Filter`."""

    def strays(self, options: Stray) -> list[dict[str, Any]]:
        """Sessions on batch nodes that belong to no batch job; a server has options of its own."""

    def named(self, name: str) -> list[dict[str, Any]]:
        """The jobs somebody may mean by a name."""

    def job(self, key: str) -> dict[str, Any] | None:
        """One job whole."""

    def scaling(self, key: str) -> dict[str, Any] | None:
        """Whether it will scale."""

    def close(self) -> None: ...


class Direct:
    """Reads a store itself: one that nobody else has open, or one that many may."""

    def __init__(self, store: Store) -> None:
        self._store = store
        # Whoever may open its files may read them.
        self._view = View(store)

    def jobs(self, **filters: Any) -> list[dict[str, Any]]:
        now = time.time()
        return self._view.jobs(Filter(**filters).query(now), now)

    def strays(self, options: Stray) -> list[dict[str, Any]]:
        return self._view.strays(time.time(), options)

    def named(self, name: str) -> list[dict[str, Any]]:
        return self._view.named(name, time.time())

    def job(self, key: str) -> dict[str, Any] | None:
        return self._view.job(key, time.time())

    def scaling(self, key: str) -> dict[str, Any] | None:
        return self._view.scaling(key, time.time())

    def close(self) -> None:
        self._store.close()


class Remote:
    """Asks the server."""

    def __init__(self, url: str, opened: Callable[..., Any]) -> None:
        self._url = url
        self._open = opened

    def jobs(self, **filters: Any) -> list[dict[str, Any]]:
        given = {key: value for key, value in filters.items() if value is not None}
        found: list[dict[str, Any]] = self._get(f"/api/v1/jobs?{urlencode(given)}")
        return found

    def strays(self, options: Stray) -> list[dict[str, Any]]:  # noqa: ARG002
        strays: list[dict[str, Any]] = self._get("/api/v1/strays")
        return strays

    def named(self, name: str) -> list[dict[str, Any]]:
        found: list[dict[str, Any]] = self._get(f"/api/v1/named/{quote(name)}")
        return found

    def job(self, key: str) -> dict[str, Any] | None:
        found: dict[str, Any] | None = self._get(f"/api/v1/job/{quote(key)}")
        return found

    def scaling(self, key: str) -> dict[str, Any] | None:
        found: dict[str, Any] | None = self._get(f"/api/v1/scaling/{quote(key)}")
        return found

    def close(self) -> None:
        """Nothing is held."""

    def _get(self, path: str) -> Any:
        try:
            with self._open(self._url + path, timeout=30) as answer:
                return json.load(answer)
        except HTTPError as error:
            if error.code == 404:
                return None
            raise StoreError(f"{self._url} answered {error.code}: {_detail(error)}") from None
        except (URLError, OSError, ValueError) as error:
            raise StoreError(f"the server at {self._url} does not answer: {error}") from None


def _detail(error: HTTPError) -> str:
    """What is wrong, as the server says it; what stands before the application answers in plain text."""
    try:
        return str(json.load(error)["detail"])
    except (ValueError, KeyError, TypeError, OSError):
        return error.reason


def open_reader(path: str) -> Reader:
    """The store at `path`, through its server if one runs; or the database of that address."""
    if path.startswith(DATABASES):
        return Direct(open_database(path))
    if not os.path.isdir(path):
        if path == os.path.join(home(), "store") and (server := notice.read(SYSTEM)):
            # Whoever has no store of their own means the machine's.
            return Remote(server.url, server.opener())
        raise StoreError(f"nothing has been stored in {path} yet: start with `jobsight up`")
    try:
        store = open_store(path)
    except StoreError:
        server = notice.read(path)
        if server is None:
            raise
        return Remote(server.url, server.opener())
    # What the server had acknowledged and not yet loaded when it stopped.
    store.digest()
    return Direct(store)
