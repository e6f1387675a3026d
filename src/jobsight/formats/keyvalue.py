"""Lines of a name and a number, as many kernel files have them: `anon 4096`, `MemTotal:  16311288 kB`."""

from collections.abc import Collection


def numbers(text: str) -> dict[str, int]:
    """Numbers by name. `kB` means KiB, as everywhere in the kernel. Lines of another shape are passed over."""
    found = {}
    for line in text.splitlines():
        match line.split():
            case [name, number] if whole(number):
                found[name.rstrip(":")] = int(number)
            case [name, number, "kB"] if whole(number, digits=15):
                found[name.rstrip(":")] = int(number) * 1024
    return found


def chosen(text: str, names: Collection[str]) -> dict[str, int]:
    """Of lines `anon 4096` those of some names: a tenth of the time where a file has fifty lines."""
    found = {}
    for line in text.splitlines():
        name, _, number = line.partition(" ")
        if name in names and whole(number):
            found[name] = int(number)
    return found


def whole(text: str, digits: int = 18) -> bool:
    """Whether this is a number that a table's 64 bits can hold."""
    # isdecimal alone would let Arabic-Indic digits and such through.
    return text.isascii() and text.isdecimal() and len(text) <= digits
