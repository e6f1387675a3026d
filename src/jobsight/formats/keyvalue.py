"""Lines of a name and a number, as many kernel files have them: `anon 4096`, `MemTotal:  16311288 kB`."""


def numbers(text: str) -> dict[str, int]:
    """Numbers by name. `kB` means KiB, as everywhere in the kernel. Lines of another shape are passed over."""
    found = {}
    for line in text.splitlines():
        match line.split():
            case [name, number] if _whole(number):
                found[name.rstrip(":")] = int(number)
            case [name, number, "kB"] if _whole(number):
                found[name.rstrip(":")] = int(number) * 1024
    return found


def _whole(text: str) -> bool:
    # isdecimal alone would let Arabic-Indic digits and such through.
    return text.isascii() and text.isdecimal()
