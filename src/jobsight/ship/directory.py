"""Messages to a tree of files: `<path>/yyyy/mm/dd/<collector>-<node>.jsonl`, appended, UTC days."""

import os
import time
from typing import NamedTuple

from jobsight import files
from jobsight.schema.message import Message
from jobsight.schema.wire import encode
from jobsight.ship.sink import Place, Sink


class Options(NamedTuple):
    """Where the tree stands."""

    path: str


class Directory:
    def __init__(self, path: str, place: Place) -> None:
        self._path = path
        self._tally = place.tally
        self._day = ""

    def send(self, message: Message) -> None:
        day = time.strftime("%Y/%m/%d", time.gmtime(message.time))
        folder = os.path.join(self._path, day)
        if day != self._day:
            files.make_directory(folder)
            self._day = day
        files.append(os.path.join(folder, file_name(message)), encode(message))
        self._tally.sent += 1

    def close(self) -> None:
        """Every message is in its file already."""


def file_name(message: Message) -> str:
    """One file for each collector and node; a node's name cannot leave the folder."""
    node = message.origin.node.replace("/", "_").replace("\0", "_")
    return f"{message.collector}-{node}.jsonl"


def open_sink(options: Options, place: Place) -> Sink:
    return Directory(options.path, place)
