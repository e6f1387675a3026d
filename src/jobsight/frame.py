"""Frames: payloads in a file that may end anywhere. Length, checksum, payload; a damaged one ends the file."""

import struct
import zlib
from collections.abc import Iterator

HEAD = struct.Struct("<II")


def pack(payload: bytes) -> bytes:
    return HEAD.pack(len(payload), zlib.crc32(payload)) + payload


def size(data: bytes) -> int:
    """Of the first frame, as its head says; 0 if not even the head is there."""
    return HEAD.size + HEAD.unpack_from(data)[0] if len(data) >= HEAD.size else 0


def count(data: bytes) -> int:
    """How many frames there are, by their heads alone: for data that has been looked at before."""
    found = place = 0
    while place + HEAD.size <= len(data):
        place += HEAD.size + HEAD.unpack_from(data, place)[0]
        found += 1
    return found


def unpack(data: bytes) -> Iterator[tuple[bytes, int]]:
    """The whole frames at the beginning of `data`, each with the place where it ends."""
    place = 0
    while place + HEAD.size <= len(data):
        length, checksum = HEAD.unpack_from(data, place)
        place += HEAD.size
        payload = data[place : place + length]
        # No length: a power cut may leave a tail of zeros, which would read as frames of nothing.
        if not length or len(payload) < length or zlib.crc32(payload) != checksum:
            return
        place += length
        yield payload, place
