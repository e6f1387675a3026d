"""The rows of a node's graphics cards, used or not, and of the processes that use them."""

from functools import lru_cache
from uuid import NAMESPACE_DNS, uuid5

from jobsight.collect.gpu import Gpu
from jobsight.collect.gpucard import Gpucard
from jobsight.collect.gpuprocess import Gpuprocess
from jobsight.schema.units import Bytes, Celsius, Count, Joules, Ratio, Seconds, Watts
from jobsight.simulate.machine import Seen
from jobsight.simulate.plan import Tenant
from jobsight.simulate.site import GIB
from jobsight.simulate.work import NOTHING, Level

MEMORY = 40 * GIB
# What a card takes when it does nothing, and how much more when it computes.
IDLE_POWER, BUSY_POWER, POWER_LIMIT = 55.0, 305.0, 400.0
COOL, WARMER = 31.0, 34.0
# Of its memory, what the driver has.
DRIVER = 0.01


@lru_cache(65536)
def name(node: str, card: int) -> str:
    """A card's name for ever."""
    return f"GPU-{uuid5(NAMESPACE_DNS, f'{card}.{node}')}"


def _address(card: int) -> str:
    return f"00000000:{17 + 32 * card:02X}:00.0"


def gpucard(seen: Seen) -> list[Gpucard]:
    """What the cards are."""
    return [
        Gpucard(
            uuid=name(seen.node.name, card),
            vendor="nvidia",
            ordinal=card,
            minor=card,
            address=_address(card),
            model="NVIDIA A100-SXM4-40GB",
            architecture="Ampere",
            driver="570.124.06",
            divided=False,
            memory_total=Bytes(MEMORY),
            power_limit=Watts(POWER_LIMIT),
        )
        for card in range(seen.node.make.gpus)
    ]


def gpuprocess(seen: Seen) -> list[Gpuprocess]:
    """One process a card, as such programs have it."""
    return [
        Gpuprocess(
            uuid=name(seen.node.name, card),
            pid=tenant.pid + 1 + number % tenant.truth.draft.ranks,
            kind="compute",
            scheduler="slurm",
            job=tenant.truth.number,
            owner=tenant.truth.user.name,
            command=tenant.truth.draft.program.command,
            memory=Bytes(int(MEMORY * level.gpu_memory)),
            utilization=Ratio(level.gpu_rate),
        )
        for tenant, level in seen.levels
        if level.gpu_memory > DRIVER
        for number, card in enumerate(tenant.place.gpus)
    ]


def gpu(seen: Seen) -> list[Gpu]:
    """One row a card; whose it is, the allocation says."""
    held = {card: (tenant, level) for tenant, level in seen.levels for card in tenant.place.gpus}
    return [_row(seen, card, *held.get(card, (None, NOTHING))) for card in range(seen.node.make.gpus)]


def _row(seen: Seen, card: int, tenant: Tenant | None, level: Level) -> Gpu:
    busy = seen.past.cards.get(card, 0.0) + level.gpu
    used = max(DRIVER, level.gpu_memory)
    return Gpu(
        uuid=name(seen.node.name, card),
        vendor="nvidia",
        ordinal=card,
        minor=card,
        address=_address(card),
        scheduler="slurm" if tenant else None,
        job=tenant.truth.number if tenant else None,
        held_by="allocation" if tenant else None,
        utilization=Ratio(level.gpu_rate),
        busy=Seconds(round(busy, 6)),
        memory_utilization=Ratio(round(0.6 * level.gpu_rate, 4)),
        memory_used=Bytes(int(MEMORY * used)),
        memory_total=Bytes(MEMORY),
        power=Watts(round(IDLE_POWER + BUSY_POWER * level.gpu_rate, 1)),
        power_limit=Watts(POWER_LIMIT),
        energy=Joules(round(IDLE_POWER * seen.uptime + BUSY_POWER * busy, 3)),
        temperature=Celsius(round(COOL + WARMER * level.gpu_rate, 0)),
        processes=Count(1 if level.gpu_memory > DRIVER else 0),
    )
