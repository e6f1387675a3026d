"""Where the command line reads from: the store itself, or the server that owns it. The user does not notice."""

import json
import os
import time
from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import Any, Protocol, TypeVar
from urllib.error import HTTPError, URLError
from urllib.parse import quote, urlencode
from urllib.request import Request

from fastapi import HTTPException

from jobsight.analyse.keeper import open_database, open_store
from jobsight.analyse.sites import Asked, Site
from jobsight.metering import USUAL, Energy
from jobsight.serving import Stray
from jobsight.settings import DATABASES, home
from jobsight.show import energy, findings, lustre, notice
from jobsight.show.access import user_name
from jobsight.show.api import Filter
from jobsight.show.views import View
from jobsight.store.protocol import Store, StoreError

# Where a server that root runs keeps its store.
SYSTEM = "/var/lib/jobsight/store"

T = TypeVar("T")


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

    def findings(self, **chosen: str) -> list[dict[str, Any]]:
        """What was found, by the filters of `show.findings.Asked`."""

    def backtest(self, tried: list[str], **chosen: str) -> dict[str, Any]:
        """Whom changed thresholds would tell of, and whom no more."""

    def acknowledge(self, number: str, note: str) -> bool:
        """That whoever asks knows of a finding; False if there is none of that number."""

    def io(self, what: str, **asked: Any) -> Any:
        """`targets`, `panels` or `top` of the file system, by what `show.lustre.Asked` takes."""

    def energy(self, **wanted: str) -> dict[str, Any]:
        """Who took how much, as `show.energy.Wanted` asks."""

    def usage(self, site: Site, asked: Asked) -> dict[str, Any]:
        """How full it is, by whom and when; a server has a clock and a map of its own."""

    def programs(self, site: Site, asked: Asked) -> dict[str, Any]:
        """Which software was used how much."""

    def unmapped(self, site: Site, asked: Asked) -> list[dict[str, Any]]:
        """Commands that no rule knows."""

    def close(self) -> None: ...


class Direct:
    """Reads a store itself: one that nobody else has open, or one that many may."""

    def __init__(self, store: Store, energy: Energy = USUAL, given: Mapping[str, Any] = MappingProxyType({})) -> None:
        """`given`: what settings say of findings."""
        self._store = store
        # Whoever may open its files may read them.
        self._view = View(store, energy=energy)
        self._view.given = given

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

    def findings(self, **chosen: str) -> list[dict[str, Any]]:
        now = time.time()
        return self._view.told().now(findings.chosen(chosen, now), now)

    def backtest(self, tried: list[str], **chosen: str) -> dict[str, Any]:
        now = time.time()
        return self._view.told().backtest(findings.chosen(chosen, now), tried, now)

    def acknowledge(self, number: str, note: str) -> bool:
        return self._view.told().acknowledge(number, user_name(os.getuid()), note, time.time())

    def io(self, what: str, **asked: Any) -> Any:
        try:
            return lustre.answer(self._view.loads(), what, lustre.Asked(**asked), time.time())
        except HTTPException as error:
            raise StoreError(error.detail) from None

    def energy(self, **wanted: str) -> dict[str, Any]:
        try:
            return energy.answer(self._view.consumption(), energy.Wanted(**wanted), time.time())
        except HTTPException as error:
            raise StoreError(error.detail) from None

    def usage(self, site: Site, asked: Asked) -> dict[str, Any]:
        return _sentence(lambda: self._view.usage(site, asked, time.time()))

    def programs(self, site: Site, asked: Asked) -> dict[str, Any]:
        return _sentence(lambda: self._view.programs(site, asked, time.time()))

    def unmapped(self, site: Site, asked: Asked) -> list[dict[str, Any]]:
        return _sentence(lambda: self._view.unmapped(site, asked, time.time()))

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

    def findings(self, **chosen: str) -> list[dict[str, Any]]:
        found: list[dict[str, Any]] = self._get(f"/api/v1/findings?{urlencode(chosen)}")
        return found

    def backtest(self, tried: list[str], **chosen: str) -> dict[str, Any]:
        asked = urlencode([*chosen.items(), *(("tried", text) for text in tried)])
        found: dict[str, Any] = self._get(f"/api/v1/backtest?{asked}")
        return found

    def acknowledge(self, number: str, note: str) -> bool:
        place = f"{self._url}/api/v1/finding/{quote(number, safe='')}?{urlencode({'note': note})}"
        return self._read(Request(place, b"", {findings.OURS: "1"})) is not None  # noqa: S310  # our server's

    def io(self, what: str, **asked: Any) -> Any:
        return self._get(f"/api/v1/io/{what}?{urlencode(asked)}")

    def energy(self, **wanted: str) -> dict[str, Any]:
        told: dict[str, Any] = self._get(f"/api/v1/energy?{urlencode(wanted)}")
        return told

    def usage(self, site: Site, asked: Asked) -> dict[str, Any]:  # noqa: ARG002
        found: dict[str, Any] = self._get(f"/api/v1/usage?{urlencode(asked._asdict())}")
        return found

    def programs(self, site: Site, asked: Asked) -> dict[str, Any]:  # noqa: ARG002
        found: dict[str, Any] = self._get(f"/api/v1/programs?{urlencode(asked._asdict())}")
        return found

    def unmapped(self, site: Site, asked: Asked) -> list[dict[str, Any]]:  # noqa: ARG002
        found: list[dict[str, Any]] = self._get(f"/api/v1/unmapped?{urlencode(asked._asdict())}")
        return found

    def close(self) -> None:
        """Nothing is held."""

    def _get(self, path: str) -> Any:
        return self._read(self._url + path)

    def _read(self, asked: str | Request) -> Any:
        try:
            with self._open(asked, timeout=30) as answer:
                return json.load(answer)
        except HTTPError as error:
            if error.code == 404:
                return None
            raise StoreError(f"{self._url} answered {error.code}: {_detail(error)}") from None
        except (URLError, OSError, ValueError) as error:
            raise StoreError(f"the server at {self._url} does not answer: {error}") from None


def _sentence(ask: Callable[[], T]) -> T:
    """What cannot be asked is told as if a server had."""
    try:
        return ask()
    except ValueError as error:
        raise StoreError(str(error)) from None


def _detail(error: HTTPError) -> str:
    """What is wrong, as the server says it; what stands before the application answers in plain text."""
    try:
        return str(json.load(error)["detail"])
    except (ValueError, KeyError, TypeError, OSError):
        return error.reason


def open_reader(path: str, energy: Energy = USUAL, given: Mapping[str, Any] = MappingProxyType({})) -> Reader:
    """The store at `path`, through its server if one runs; or the database of that address. `given`: what settings
    say of findings, where no server does.
    """
    if path.startswith(DATABASES):
        return Direct(open_database(path), energy, given)
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
    return Direct(store, energy, given)
