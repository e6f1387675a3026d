"""Text as other programs want it."""

# All control characters but tab, newline and carriage return.
_SPACES = {code: " " for code in (*range(32), *range(127, 160)) if chr(code) not in "\t\n\r"}


def clean(text: str) -> str:
    """Control characters as spaces."""
    return text if text.isprintable() else text.translate(_SPACES)
