"""What a destination is: take a message, and finish what was taken."""

from typing import NamedTuple, Protocol

from jobsight.clock import Clock
from jobsight.collect.agent import Tally
from jobsight.schema.message import Message
from jobsight.settings import Spool


class Place(NamedTuple):
    """What a sink may need to know about the agent it serves."""

    node: str
    spool: Spool
    clock: Clock
    tally: Tally


class Sink(Protocol):
    """A destination. Neither call raises for a destination that is away; OSError means the message is lost here."""

    def send(self, message: Message) -> None:
        """Take one message."""

    def close(self) -> None:
        """Finish: what was taken is delivered or kept for next time."""
