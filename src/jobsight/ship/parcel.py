"""What goes to a broker, as it waits in the spool."""

import zlib
from typing import NamedTuple

from jobsight.schema.wire import GZIP, compress


class Parcel(NamedTuple):
    """What Kafka calls a record: those with one topic and one key stay in order."""

    topic: str
    key: bytes
    value: bytes


def pack(parcel: Parcel) -> bytes:
    """As it waits in the spool: the topic can be read without unpacking."""
    return b"%s %d\n%s%s" % (parcel.topic.encode("ascii"), len(parcel.key), parcel.key, compress(parcel.value))


def opened(payload: bytes) -> Parcel:
    """Its value still packed. ValueError if it is none of ours."""
    head, _, rest = payload.partition(b"\n")
    words = head.split(b" ")
    if len(words) != 2 or not words[1].isdigit():
        raise ValueError(f"expected a topic and the length of a key, got {head[:60]!r}")
    return Parcel(words[0].decode("ascii"), rest[: int(words[1])], rest[int(words[1]) :])


def unpack(payload: bytes) -> Parcel:
    """ValueError if it is none of ours."""
    parcel = opened(payload)
    try:
        return parcel._replace(value=zlib.decompress(parcel.value, GZIP))
    except zlib.error as error:
        raise ValueError(f"expected a packed value, got {parcel.value[:20]!r}: {error}") from None
