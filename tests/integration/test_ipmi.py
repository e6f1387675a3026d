"""The node's power from a simulated controller, by the programs that sites use."""

import os
import shutil
from collections.abc import Callable

import pytest

from jobsight import catalogue
from jobsight.collect.ipmi import Options
from jobsight.command import CommandError
from jobsight.host import Host
from jobsight.schema.units import Seconds
from tests.integration.ipmi import PATH, Controller, controller

__all__ = ["controller"]
pytestmark = pytest.mark.slow

COLLECTOR = catalogue.collector("ipmi")
CLIENTS: list[Callable[[Controller], tuple[str, ...]]] = [Controller.freeipmi, Controller.ipmitool]


@pytest.fixture(autouse=True)
def _path(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", PATH)


@pytest.mark.parametrize("client", CLIENTS)
def test_both_clients_tell_what_the_controller_measures(
    controller: Controller, client: Callable[[Controller], tuple[str, ...]]
) -> None:
    controller.measure("431 120 876 402")
    (row,) = COLLECTOR.rows(Host(), Options(command=client(controller)))
    assert (row.power, row.power_least, row.power_most, row.power_mean) == (431.0, 120.0, 876.0, 402.0)
    assert (row.period, row.source) == (1.0, client(controller)[0])


@pytest.mark.parametrize("client", CLIENTS)
def test_a_controller_that_refuses_is_a_failure_that_names_the_program(
    controller: Controller, client: Callable[[Controller], tuple[str, ...]]
) -> None:
    controller.measure("refuse")
    words = client(controller)
    with pytest.raises(CommandError, match=f"{words[0]} ended with code 1"):
        COLLECTOR.rows(Host(), Options(command=words))


@pytest.mark.parametrize("client", CLIENTS)
def test_a_controller_that_does_not_measure_has_no_rows_and_says_so(
    controller: Controller, client: Callable[[Controller], tuple[str, ...]]
) -> None:
    controller.measure("off")
    host = Host()
    assert COLLECTOR.rows(host, Options(command=client(controller))) == []
    assert host.missed() == {"power": "absent"}


@pytest.mark.parametrize("client", CLIENTS)
def test_a_controller_that_hangs_is_given_up_and_asked_again_later(
    controller: Controller, client: Callable[[Controller], tuple[str, ...]]
) -> None:
    host, options = Host(), Options(command=client(controller), limit=Seconds(2.0), fresh=Seconds(0.0))
    controller.measure("217 180 260 215")
    assert COLLECTOR.rows(host, options)[0].power == 217.0
    controller.measure(None)
    (stale,) = COLLECTOR.rows(host, options)
    assert (stale.power, stale.age > 0.0, host.missed()) == (217.0, True, {"power": "failed"})
    with pytest.raises(CommandError, match=r"did not end within 2 s and was ended"):
        COLLECTOR.rows(Host(), options)
    controller.measure("300 180 310 215")
    (fresh,) = COLLECTOR.rows(host, Options(command=options.command, limit=Seconds(20.0), fresh=Seconds(0.0)))
    assert (fresh.power, fresh.age) == (300.0, 0.0)


def test_real_sudo_runs_it_too(controller: Controller) -> None:
    if shutil.which("sudo", path=PATH) is None or os.geteuid() != 0:
        if os.environ.get("CI") == "true":
            pytest.fail("sudo without a password must be tested: no sudo, or not root")
        pytest.skip("SUDO IS NOT TRIED: IT IS NOT THERE, OR WE ARE NOT ROOT")
    controller.measure("217 180 260 215")
    (row,) = COLLECTOR.rows(Host(), Options(command=controller.ipmitool(), sudo=True, limit=Seconds(10.0)))
    assert row.power == 217.0
