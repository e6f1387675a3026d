"""Where the command line reads from: the store itself, or the server that owns it. The user does not notice."""

import json
import os
import time
from typing import Any, Protocol
from urllib.error import HTTPError, URLError
from urllib.parse import quote, urlencode
from urllib.request import ProxyHandler, build_opener

from jobsight import files
from jobsight.analyse.keeper import open_database, open_store
from jobsight.settings import DATABASES
from jobsight.show import views
from jobsight.show.api import Filter
from jobsight.store.protocol import Store, StoreError


class Reader(Protocol):
    """What the verbs ask for."""

    def jobs(self, **filters: Any) -> list[dict[str, Any]]:
        """Jobs by the filters of `show.api.Filter`."""

    def named(self, name: str) -> list[dict[str, Any]]:
        """The jobs somebody may mean by a name."""

    def job(self, key: str) -> dict[str, Any] | None:
        """One job whole."""

    def close(self) -> None: ...


class Direct:
    """Reads a store itself: one that nobody else has open, or one that many may."""

    def __init__(self, store: Store) -> None:
        self._store = store

    def jobs(self, **filters: Any) -> list[dict[str, Any]]:
        now = time.time()
        return views.jobs(self._store, Filter(**filters).query(now), now)

    def named(self, name: str) -> list[dict[str, Any]]:
        return views.named(self._store, name, time.time())

    def job(self, key: str) -> dict[str, Any] | None:
        return views.job(self._store, key, time.time())

    def close(self) -> None:
        self._store.close()


class Remote:
    """Asks the server."""

    def __init__(self, url: str) -> None:
        self._url = url
        # A cluster's proxy has no business between us and our own machine.
        self._open = build_opener(ProxyHandler({})).open

    def jobs(self, **filters: Any) -> list[dict[str, Any]]:
        given = {key: value for key, value in filters.items() if value is not None}
        found: list[dict[str, Any]] = self._get(f"/api/jobs?{urlencode(given)}")
        return found

    def named(self, name: str) -> list[dict[str, Any]]:
        found: list[dict[str, Any]] = self._get(f"/api/named/{quote(name)}")
        return found

    def job(self, key: str) -> dict[str, Any] | None:
        found: dict[str, Any] | None = self._get(f"/api/job/{quote(key)}")
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
            detail = json.load(error).get("detail", error.reason)
            raise StoreError(f"{self._url} answered {error.code}: {detail}") from None
        except (URLError, OSError, ValueError) as error:
            raise StoreError(f"the server at {self._url} does not answer: {error}") from None


def open_reader(path: str) -> Reader:
    """The store at `path`, through its server if one runs; or the database of that address."""
    if path.startswith(DATABASES):
        return Direct(open_database(path))
    if not os.path.isdir(path):
        raise StoreError(f"nothing has been stored in {path} yet: start with `jobsight up`")
    try:
        store = open_store(path)
    except StoreError:
        announced = files.read_at(os.path.join(path, "server.json"), 0, 4096)
        if not announced:
            raise
        return Remote(json.loads(announced)["url"])
    # What the server had acknowledged and not yet loaded when it stopped.
    store.digest()
    return Direct(store)
