"""A model of one Lustre target's job statistics, after the kernel's: what it counts, and when it forgets.

Nothing is done by a timer. Entries are swept when an unknown one does its first operation, when a reader closes the
file, or when the interval is set, and only if half the interval has passed since the last time; those that were not
used for the whole interval go then. So an idle entry stays for one to one and a half intervals, and the reading that
removes it still shows it.
"""

from typing import NamedTuple

LONGEST = 31
WRAP = 2**64
BUCKETS = 32
OST = ("read_bytes", "write_bytes", "read", "write", "getattr", "setattr", "punch", "sync", "destroy", "create",
       "statfs", "get_info", "set_info", "quotactl", "prealloc")  # fmt: skip
MDT = ("open", "close", "mknod", "link", "unlink", "mkdir", "rmdir", "rename", "getattr", "setattr", "getxattr",
       "setxattr", "statfs", "sync", "samedir_rename", "crossdir_rename", "read", "write", "read_bytes",
       "write_bytes", "punch", "migrate", "fallocate", "parallel_rename_file", "parallel_rename_dir")  # fmt: skip
OPERATIONS = {"mdt": MDT, "ost": OST}
BYTES = ("read_bytes", "write_bytes")


class Meter(NamedTuple):
    """What a target knows of one operation of one entry, or of all."""

    samples: int = 0
    least: int = 0
    most: int = 0
    total: int = 0
    squares: int = 0
    sizes: tuple[int, ...] = ()
    """Of bytes: how many up to 1, 2, 4, 8 … bytes."""

    def plus(self, amount: int, *, sized: bool, times: int = 1) -> "Meter":
        """After `times` more operations of so much each."""
        sizes = self.sizes
        if sized:
            bucket = min(BUCKETS - 1, max(0, amount - 1).bit_length())
            counts = list(sizes or (0,) * BUCKETS)
            counts[bucket] += times
            sizes = tuple(counts)
        return Meter(
            self.samples + times,
            min(self.least, amount) if self.samples else amount,
            max(self.most, amount),
            (self.total + amount * times) % WRAP,
            (self.squares + amount * amount * times) % WRAP,
            sizes,
        )


NONE = Meter()


class Account:
    """One entry."""

    def __init__(self, raw: bytes, now: float) -> None:
        self.raw = raw
        self.start = self.latest = now
        self.meters: dict[str, Meter] = {}
        self.version = 0
        """Grows with every operation."""

    def copy(self) -> "Account":
        made = Account(self.raw, self.start)
        made.latest, made.meters, made.version = self.latest, dict(self.meters), self.version
        return made


class Target:
    """One target on whichever server has it."""

    def __init__(self, name: str, kind: str, now: float, interval: float = 600.0) -> None:
        self.name = name
        self.kind = kind
        self.interval = interval
        self.accounts: dict[bytes, Account] = {}
        self.totals: dict[str, Meter] = {}
        self.mounted = now
        self.work: dict[tuple[bytes, str], int] = {}
        """The truth: all that was ever done, by entry and operation; of bytes the sum, else the number."""
        self._swept = now
        self._versions = 0

    def log(
        self, raw: bytes, operation: str, now: float, amount: int = 1, times: int = 1, usecs: int = 0,
        since: float | None = None,
    ) -> None:  # fmt: skip
        """A client does something `times` over, from `since` to now: of `read` and `write` the amount is bytes, of
        others it says nothing. `usecs` is how long the server took for one.
        """
        raw = raw[:LONGEST]
        account = self.accounts.get(raw)
        if account is None:
            self._sweep(now)
            account = self.accounts[raw] = Account(raw, now if since is None else since)
        account.latest = now
        self._versions += 1
        account.version = self._versions
        self._add(account, operation, usecs, times, sized=False)
        if operation in ("read", "write"):
            self._add(account, f"{operation}_bytes", amount, times, sized=True)

    def read(self, now: float, skip: int | None = None) -> list[Account]:
        """All entries as a reader sees them; closing the file sweeps. One may be left out, as an old server does
        where another was removed while it was read.
        """
        seen = [account.copy() for number, account in enumerate(self.accounts.values()) if number != skip]
        self.close(now)
        return seen

    def close(self, now: float) -> None:
        """A reader is done with the file."""
        self._sweep(now)

    def clear(self, raw: bytes | None = None) -> None:
        """An administrator drops one entry, or all."""
        if raw is None:
            self.accounts.clear()
        else:
            self.accounts.pop(raw, None)

    def set_interval(self, seconds: float, now: float) -> None:
        """Since 2.15 it is kept halved, as a whole number."""
        self.interval = 2.0 * (int(seconds) // 2)
        self._sweep(now)

    def mount(self, now: float) -> None:
        """On another server, or on the same one after a boot: nothing is left of what was counted."""
        self.accounts.clear()
        self.totals.clear()
        self.mounted = self._swept = now

    def _sweep(self, now: float) -> None:
        if self.interval <= 0 or now - self._swept < self.interval / 2:
            return
        self._swept = now
        self.accounts = {raw: one for raw, one in self.accounts.items() if now - one.latest < self.interval}

    def _add(self, account: Account, operation: str, amount: int, times: int, *, sized: bool) -> None:
        account.meters[operation] = account.meters.get(operation, NONE).plus(amount, sized=sized, times=times)
        self.totals[operation] = self.totals.get(operation, NONE).plus(amount, sized=sized, times=times)
        key = account.raw, operation
        self.work[key] = self.work.get(key, 0) + (amount * times if sized else times)
