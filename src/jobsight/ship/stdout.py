"""Messages to standard output, one JSON object a line."""

import sys
from typing import NamedTuple

from jobsight.schema.message import Message
from jobsight.schema.wire import encode
from jobsight.ship.sink import Place, Sink


class Options(NamedTuple):
    """Nothing to set."""


class Stdout:
    def __init__(self, place: Place) -> None:
        self._tally = place.tally

    def send(self, message: Message) -> None:
        sys.stdout.buffer.write(encode(message))
        sys.stdout.buffer.flush()
        self._tally.sent += 1

    def close(self) -> None:
        sys.stdout.buffer.flush()


def open_sink(_options: Options, place: Place) -> Sink:
    return Stdout(place)
