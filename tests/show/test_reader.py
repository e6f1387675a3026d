"""Asking the server in place of the store: whatever it answers, people read one sentence."""

import io
from email.message import Message
from typing import Any, NoReturn
from urllib.error import HTTPError

import pytest

from jobsight.show.reader import Remote
from jobsight.store.protocol import StoreError


@pytest.mark.parametrize(
    ("status", "body", "said"),
    [
        (401, b"Unauthorized\n", "answered 401: no"),
        (500, b"Internal Server Error", "answered 500: no"),
        (502, b"", "answered 502: no"),
        (400, b"[]", "answered 400: no"),
        (403, b'{"detail": "not for you"}', "answered 403: not for you"),
    ],
)
def test_an_error_that_is_no_json_is_a_sentence_too(status: int, body: bytes, said: str) -> None:
    def opened(url: str, **_: Any) -> NoReturn:
        raise HTTPError(url, status, "no", Message(), io.BytesIO(body))

    with pytest.raises(StoreError, match=said):
        Remote("http://127.0.0.1:1", opened).jobs()
