"""bcrypt by the system's own libcrypt: every distribution has it for its passwords, so no package is needed.

Found as libxcrypt's libcrypt.so.1 or .so.2, or in the C library itself (musl). Python's `crypt` did the same and is
gone since 3.13.
"""

import ctypes
from functools import cache
from typing import Any

NAMES = ("libcrypt.so.2", "libcrypt.so.1", None)
# More than any of them uses for itself (glibc's old one, the largest, has 128 KiB).
WORKSPACE = 256 * 1024
# A known password, to see whether a library knows bcrypt at all.
PROOF = (b"U*U", b"$2a$05$CCCCCCCCCCCCCCCCCCCCC.E5YPO9kmyuRGyh0XouQYb4YMJKvyOeW")


def hashed(password: bytes, kept: bytes) -> bytes:
    """The password hashed as `kept` was; the same if it is the same password. OSError where nothing here can."""
    function = _function()
    if function is None:
        raise OSError("no libcrypt on this machine knows bcrypt")
    if b"\0" in password:
        # C would see the part before it, and take that for the whole.
        return b""
    return _called(function, password, kept)


@cache
def _function() -> Any:
    for name in NAMES:
        try:
            function = ctypes.CDLL(name).crypt_r
        except (OSError, AttributeError):
            continue
        function.argtypes = [ctypes.c_char_p, ctypes.c_char_p, ctypes.c_void_p]
        function.restype = ctypes.c_char_p
        if _called(function, *PROOF) == PROOF[1]:
            return function
    return None


def _called(function: Any, password: bytes, kept: bytes) -> bytes:
    return function(password, kept, ctypes.create_string_buffer(WORKSPACE)) or b""
