"""What waits in a spool, asked from outside: another process may be using it, so nothing is touched."""

import os

from jobsight import files, frame
from jobsight.ship.spool import SEGMENT, Backlog, Segment, found_in, read_lost, read_mark


def backlogs(path: str) -> dict[str, Backlog]:
    """Of every destination that has a spool in the folder, by its name there."""
    try:
        names = sorted(os.listdir(path))
    except (FileNotFoundError, NotADirectoryError):
        return {}
    return {name: backlog(os.path.join(path, name)) for name in names if os.path.isdir(os.path.join(path, name))}


def backlog(path: str) -> Backlog:
    mark = read_mark(path)
    dropped, torn = read_lost(path)
    messages = size = 0
    since = None
    for at, segment in sorted(found_in(path).items()):
        # What is before the mark has been sent and only not yet been removed.
        if at < mark.segment:
            continue
        start = mark.offset if at == mark.segment else 0
        held = _count(segment, start)
        messages += held
        size += max(0, segment.size - start)
        if held and since is None:
            since = max(segment.began, mark.since)
    return Backlog(messages, size, since, dropped, torn)


def _count(segment: Segment, start: int) -> int:
    """Whole messages behind `start`, a piece at a time."""
    total = 0
    while data := files.read_at(segment.path, start, 2 * SEGMENT):
        ends = [end for _, end in frame.unpack(data)]
        if not ends:
            return total
        total += len(ends)
        start += ends[-1]
    return total
