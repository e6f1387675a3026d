"""Columns of texts, turned into values: equal texts once, and the usual ones without looking them up."""

from collections.abc import Callable
from typing import Any

BAD: Any = object()
"""What a text that does not read is turned into."""
# As long as there are not too many different ones.
REMEMBERED = 50_000


class Memo(dict[str, Any]):
    """What a text says, worked out once."""

    def __init__(self, convert: Callable[[str], Any]) -> None:
        self.convert = convert
        self.bad = False
        """Whether there was a text that says nothing since this was last set."""
        super().__init__()

    def __missing__(self, text: str) -> Any:
        try:
            value = self.convert(text)
        except ValueError:
            self.bad = True
            return BAD
        if len(self) < REMEMBERED:
            self[text] = value
        return value


# Most texts of most columns are of one kind, which is read without looking it up; the others are the memo's.


def looked_up(texts: list[str], memo: Memo) -> list[Any]:
    return list(map(memo.__getitem__, texts))


def words(texts: list[str], memo: Memo) -> list[Any]:  # noqa: ARG001
    return [text or None for text in texts]


def numbers(texts: list[str], memo: Memo) -> list[Any]:
    return [
        int(text) if text.isdecimal() and text.isascii() and len(text) < 19 and text != "0" else memo[text]
        for text in texts
    ]


def instants(texts: list[str], memo: Memo) -> list[Any]:
    whole = "".join(texts)
    if len(whole) == 10 * len(texts) and whole.isdecimal() and whole.isascii() and len(set(map(len, texts))) == 1:
        return list(map(float, texts))
    return [
        float(text) if len(text) == 10 and text.isdecimal() and text.isascii() and text[0] != "0" else memo[text]
        for text in texts
    ]


def indexes(texts: list[str], memo: Memo) -> list[Any]:
    """Numbers of which none is missing and none is long."""
    whole = "".join(texts)
    if whole.isdecimal() and whole.isascii() and all(texts) and max(map(len, texts)) < 19:
        return list(map(int, texts))
    return looked_up(texts, memo)


def seconds(texts: list[str], memo: Memo) -> list[Any]:
    return [float(text) if text.isdecimal() and text.isascii() and len(text) < 16 else memo[text] for text in texts]


def unlike(texts: list[str], memo: Memo) -> list[Any]:
    """Texts of which hardly two are equal: looking them up would only cost."""
    convert = memo.convert
    try:
        return [convert(text) if text else None for text in texts]
    except ValueError:
        return looked_up(texts, memo)
