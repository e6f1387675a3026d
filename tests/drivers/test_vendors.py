"""Cards of four makers in one machine: what one maker's library cannot do is not the others' loss."""

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from jobsight.collector import AbsentError
from jobsight.drivers import attendant, vendors
from jobsight.drivers.soname import ROCM, places
from jobsight.drivers.vendors import VENDORS, Cards, Vendor
from jobsight.host import Host

# The other process finds our libraries under the makers' names, and what they are to do in its environment.
SCRIPT = """
import os, sys
name, *sys.path = sys.argv[1:]
os.environ.update({words!r})
from jobsight.drivers import soname
for maker, path in {paths!r}.items():
    setattr(soname, maker, (path,))
if name == "nvml":
    from jobsight.drivers import nvmllibrary
    nvmllibrary.Library.__init__.__defaults__ = (({paths!r}["NVML"],),)
from jobsight.drivers import attendant
attendant.serve(name)
"""


@pytest.fixture
def cards(compiled: Callable[[str], str], monkeypatch: pytest.MonkeyPatch) -> Iterator[Callable[..., Cards]]:
    made: list[Cards] = []
    paths = {
        "ROCM": compiled("rocmsmi"),
        "XPUM": compiled("xpum"),
        "HLML": compiled("hlml"),
        "NVML": compiled("nvml"),
    }

    def machine(**words: str) -> Cards:
        monkeypatch.setattr(attendant, "SCRIPT", SCRIPT.format(words=words, paths=paths))
        monkeypatch.setattr(vendors, "ANSWER", 30.0)
        here = {vendor.name: vendor._replace(module="proc/self", libraries=()) for vendor in VENDORS}
        monkeypatch.setattr(vendors, "VENDORS", tuple(here.values()))
        made.append(Cards())
        return made[-1]

    yield machine
    for one in made:
        one.close()


def test_four_makers_are_read_side_by_side_and_one_without_processes_loses_nobody_elses(
    cards: Callable[..., Cards],
) -> None:
    host = Host()
    reading = cards().read(host)
    makers = [card.vendor for card in reading.cards]
    assert {maker: makers.count(maker) for maker in makers} == {"nvidia": 2, "amd": 2, "intel": 2, "habana": 2}
    assert len({card.uuid for card in reading.cards}) == 8
    owned = {card.uuid: card.vendor for card in reading.cards}
    found = [owned[holder.uuid] for holder in reading.holders]
    assert {maker: found.count(maker) for maker in found} == {"nvidia": 2, "amd": 3, "intel": 2}
    assert host.missed() == {}


def test_makers_whose_libraries_crash_are_said_and_the_others_are_read(cards: Callable[..., Cards]) -> None:
    host = Host()
    reading = cards(NVML_STUB="crash", HLML_STUB="unloaded").read(host)
    silent = {card.vendor: card.trouble or "" for card in reading.cards if not card.uuid}
    assert silent.keys() == {"nvidia", "habana"}
    assert silent["habana"] == "hlml: LibraryError: hlml_init: driver not loaded"
    assert silent["nvidia"].startswith("nvml: its process ")
    assert sorted(card.vendor for card in reading.cards if card.uuid) == ["amd", "amd", "intel", "intel"]
    assert host.missed() == {"uuid": "failed"}


def test_a_module_that_draws_on_a_screen_is_no_card_without_the_library(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    host, amd = Host(str(tmp_path)), next(vendor for vendor in VENDORS if vendor.name == "amd")
    (tmp_path / "sys/module/amdgpu").mkdir(parents=True)
    assert not amd.present(host)
    library = tmp_path / places(ROCM)[0].lstrip("/")
    library.parent.mkdir(parents=True)
    library.touch()
    assert amd.present(host)
    monkeypatch.setattr(vendors, "VENDORS", (Vendor("amd", "proc/self", "rocmsmi", ("/none/librocm_smi64.so",)),))
    with pytest.raises(AbsentError):
        Cards().read(Host())
