"""Prints what a Lustre target has, as servers from 2.12 to 2.17 do, and as `lctl get_param` frames it."""

from collections.abc import Iterable
from typing import NamedTuple

from jobsight.simulate.lustretarget import BYTES, MDT, NONE, OPERATIONS, OST, Account, Meter, Target

FOLDERS = {"mdt": "mdt", "ost": "obdfilter"}
OLD_OST = tuple(name for name in OST if name not in ("read", "write", "prealloc"))
OLD_MDT = (*MDT[:16], "read_bytes", "write_bytes", "punch")
UNITS = ("", "K", "M", "G")


class Dialect(NamedTuple):
    """How one release writes."""

    name: str
    times: str
    """`whole` seconds, `boot` for the time since boot at the margin, or `exact`."""
    start: bool
    usecs: bool
    squares: bool
    sizes: bool
    tight: bool
    """Whether long numbers stick to the word before them."""
    quotes: str
    """`none`; `all` that is odd, the colon too; `some`, where a colon only makes quotes."""
    heading: bool = True
    """Whether a target without entries has one."""
    ost: tuple[str, ...] = OST
    mdt: tuple[str, ...] = MDT

    def operations(self, kind: str) -> tuple[str, ...]:
        return self.ost if kind == "ost" else self.mdt


_2_12 = Dialect("2.12", "whole", False, False, False, False, True, "none", ost=OLD_OST, mdt=OLD_MDT)
_2_14 = Dialect("2.14", "whole", False, True, True, False, True, "none", mdt=(*OLD_MDT, "migrate"))
_2_15_2 = Dialect("2.15.2", "exact", True, True, True, False, False, "all", mdt=MDT[:-2])
_2_16 = _2_15_2._replace(name="2.16", sizes=True, quotes="some", mdt=MDT)
DIALECTS = {
    dialect.name: dialect
    for dialect in (
        _2_12,
        _2_12._replace(name="2.12-ddn", usecs=True, squares=True, ost=OST),
        _2_14,
        _2_16._replace(name="2.14-ddn", ost=OST[::-1], mdt=(*MDT[::-1], "brew")),
        _2_15_2._replace(name="2.15.0", times="boot", quotes="none"),
        _2_15_2,
        _2_16,
        _2_16._replace(name="2.17", heading=False, mdt=(*MDT, "rename_trylocks")),
    )
}


def render(accounts: Iterable[Account], kind: str, dialect: Dialect, booted: float = 0.0) -> bytes:
    """The file `job_stats` of one target."""
    entries = [_entry(account, kind, dialect, booted) for account in accounts]
    heading = b"job_stats:\n" if entries or dialect.heading else b""
    return heading + b"".join(entries)


def framed(parts: Iterable[tuple[str, str, str, bytes]]) -> bytes:
    """What lctl prints of files: kind, target, name and content of each."""
    made = []
    for kind, target, name, content in parts:
        several = content.count(b"\n") > 1
        prefix = f"{FOLDERS[kind]}.{target}.{name}=".encode()
        made.append(prefix + (b"\n" if several else b"") + (content or b"\n"))
    return b"".join(made)


def stats(target: Target, now: float, *, header: bool = True) -> bytes:
    """The file with the target's totals: `stats` or `md_stats`. What never happened is not printed."""
    lines = [f"snapshot_time             {now:.9f} secs.nsecs"]
    if header:
        lines.append(f"start_time                {target.mounted:.9f} secs.nsecs")
        lines.append(f"elapsed_time              {now - target.mounted:.9f} secs.nsecs")
    for name in OPERATIONS[target.kind]:
        meter = target.totals.get(name)
        if meter is not None:
            unit = "bytes" if name in BYTES else "usecs"
            tail = f"{meter.least} {meter.most} {meter.total} {meter.squares}"
            lines.append(f"{name:<25} {meter.samples} samples [{unit}] {tail}")
    return "".join(f"{line}\n" for line in lines).encode()


def _entry(account: Account, kind: str, dialect: Dialect, booted: float) -> bytes:
    lines = [b"- %-16s %s" % (b"job_id:", printed(account.raw, dialect.quotes))]
    lines += [line.encode() for line in _times(account, dialect, booted)]
    for name in dialect.operations(kind):
        meter = account.meters.get(name, NONE)
        lines.append(_operation(name, meter, kind, dialect).encode())
    return b"".join(line + b"\n" for line in lines)


def _times(account: Account, dialect: Dialect, booted: float) -> list[str]:
    if dialect.times == "whole":
        return [f"  {'snapshot_time:':<16} {int(account.latest)}"]
    shift = booted if dialect.times == "boot" else 0.0
    values = {"snapshot_time": account.latest - shift}
    if dialect.start:
        values |= {"start_time": account.start - shift, "elapsed_time": account.latest - account.start}
    if dialect.times == "boot":
        return [f"{name:<16}: {value:.9f} secs.nsecs" for name, value in values.items()]
    return [f"  {name + ':':<16} {value:.9f} secs.nsecs" for name, value in values.items()]


def _operation(name: str, meter: Meter, kind: str, dialect: Dialect) -> str:
    sized = name in BYTES and not (kind == "mdt" and not dialect.usecs)
    unit = "bytes" if sized else "usecs" if dialect.usecs else "reqs"
    text = f"  {name + ':':<16} {{ samples: {meter.samples:>11}, unit: {unit:>5}"
    blank = "" if dialect.tight else " "
    if sized or dialect.usecs:
        text += f", min:{blank}{meter.least:>8}, max:{blank}{meter.most:>8}, sum:{blank}{meter.total:>16}"
        if dialect.squares:
            text += f", sumsq: {meter.squares:>18}"
    if sized and dialect.sizes:
        buckets = [f"{size_of(number)}: {count}" for number, count in enumerate(meter.sizes) if count]
        text += f", hist: {{ {', '.join(buckets)} }}"
    return text + " }"


def size_of(power: int) -> str:
    return f"{2 ** (power % 10)}{UNITS[power // 10]}"


def printed(raw: bytes, quotes: str) -> bytes:
    """An identifier as a server prints it."""
    if quotes == "none":
        return bytes(byte if 0x20 <= byte < 0x7F or byte >= 0xA0 else 0x3F for byte in raw)
    bare = b".@-_" if quotes == "all" else b".@-_:/"
    made = b"".join(bytes((byte,)) if _letter(byte) or byte in bare else b"\\x%02X" % byte for byte in raw)
    odd = made != raw or (quotes == "some" and (b":" in raw or raw[:1] == b"@"))
    return b'"%s"' % made if odd else made


def _letter(byte: int) -> bool:
    """What the kernel takes for a letter or a digit: Latin-1, whatever the bytes mean."""
    return (byte < 0x80 and chr(byte).isalnum()) or (byte >= 0xC0 and byte not in (0xD7, 0xF7))
