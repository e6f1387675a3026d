"""XXH3, the hash of 128 bits, as its specification has it; with seed 0 and its own secret. No cryptography.

In Python, so that a node needs no library for the few bytes a job is named by: some ten microseconds for them.
"""

from struct import unpack_from

ALL = 2**64 - 1
P32_1, P32_2, P32_3 = 0x9E3779B1, 0x85EBCA77, 0xC2B2AE3D
P64_1, P64_2, P64_3 = 0x9E3779B185EBCA87, 0xC2B2AE3D27D4EB4F, 0x165667B19E3779F9
P64_4, P64_5 = 0x85EBCA77C2B2AE63, 0x27D4EB2F165667C5
MIX_1, MIX_2 = 0x165667919E3779F9, 0x9FB21C651E98DF25
SECRET = bytes.fromhex(
    "b8fe6c3923a44bbe7c01812cf721ad1cded46de9839097db7240a4a4b7b3671fcb79e64eccc0e578825ad07dccff7221"
    "b8084674f743248ee03590e6813a264c3c2852bb91c300cb88d0658b1b532ea371644897a20df94e3819ef46a9deacd8"
    "a8fa763fe39c343ff9dcbbc7c70b4f1d8a51e04bcdb45931c89f7ec9d9787364eac5ac8334d3ebc3c581a0fffa1363eb"
    "170ddd51b7f0da49d316552629d4689e2b16be587d47a1fc8ff8b8d17ad031ce45cb3a8f95160428afd7fbcabb4b407e"
)
# A stripe has eight lanes of eight bytes. The secret moves on by a lane with each; after so many, lanes are mixed.
STRIPE, BLOCK = 64, 1024
START = (P32_3, P64_1, P64_2, P64_3, P64_4, P32_2, P64_5, P32_1)


def digest(text: bytes) -> bytes:
    """Sixteen bytes, the high half first."""
    size = len(text)
    if size <= 16:
        low, high = _tiny(text, size)
    elif size <= 240:
        low, high = _short(text, size)
    else:
        low, high = _long(text, size)
    return (high << 64 | low).to_bytes(16, "big")


def _tiny(text: bytes, size: int) -> tuple[int, int]:
    if size > 8:
        return _nine_to_sixteen(text, size)
    if size > 3:
        first, last = _word(text, 0), _word(text, size - 4)
        keyed = (first | last << 32) ^ _secret(16) ^ _secret(24)
        product = keyed * (P64_1 + (size << 2))
        low, high = product & ALL, product >> 64
        high = (high + (low << 1)) & ALL
        low ^= high >> 3
        low = ((low ^ low >> 35) * MIX_2) & ALL
        return low ^ low >> 28, _stirred(high)
    if size:
        part = text[0] << 16 | text[size >> 1] << 24 | text[-1] | size << 8
        turned = int.from_bytes(part.to_bytes(4, "little"), "big")
        turned = (turned << 13 | turned >> 19) & 0xFFFFFFFF
        keys = _word(SECRET, 0) ^ _word(SECRET, 4), _word(SECRET, 8) ^ _word(SECRET, 12)
        return _settled(part ^ keys[0]), _settled(turned ^ keys[1])
    return _settled(_secret(64) ^ _secret(72)), _settled(_secret(80) ^ _secret(88))


def _nine_to_sixteen(text: bytes, size: int) -> tuple[int, int]:
    first, last = _long_word(text, 0), _long_word(text, size - 8)
    product = (first ^ last ^ _secret(32) ^ _secret(40)) * P64_1
    low = ((product & ALL) + (size - 1 << 54)) & ALL
    last ^= _secret(48) ^ _secret(56)
    high = ((product >> 64) + last + (last & 0xFFFFFFFF) * (P32_2 - 1)) & ALL
    low ^= int.from_bytes(high.to_bytes(8, "little"), "big")
    product = low * P64_2
    return _stirred(product & ALL), _stirred(((product >> 64) + high * P64_2) & ALL)


def _short(text: bytes, size: int) -> tuple[int, int]:
    low, high = (size * P64_1) & ALL, 0
    if size <= 128:
        # From the middle outwards, two halves at a time.
        for step in range((size - 1) // 32, -1, -1):
            low, high = _paired(low, high, text, 16 * step, size - 16 * (step + 1), 32 * step)
    else:
        for place in range(0, 128, 32):
            low, high = _paired(low, high, text, place, place + 16, place)
        low, high = _stirred(low), _stirred(high)
        for place in range(128, size - 31, 32):
            low, high = _paired(low, high, text, place, place + 16, place - 125)
        low, high = _paired(low, high, text, size - 16, size - 32, 103)
    mixed = (low * P64_1 + high * P64_4 + size * P64_2) & ALL
    return _stirred((low + high) & ALL), -_stirred(mixed) & ALL


def _paired(low: int, high: int, text: bytes, one: int, other: int, key: int) -> tuple[int, int]:
    """Thirty-two bytes, taken from two places."""
    a, b, c, d = *unpack_from("<2Q", text, one), *unpack_from("<2Q", text, other)
    low = (low + _folded(a ^ _secret(key), b ^ _secret(key + 8))) & ALL ^ ((c + d) & ALL)
    high = (high + _folded(c ^ _secret(key + 16), d ^ _secret(key + 24))) & ALL ^ ((a + b) & ALL)
    return low, high


def _long(text: bytes, size: int) -> tuple[int, int]:
    lanes = list(START)
    for place in range(0, size - 1, BLOCK):
        whole = place + BLOCK <= size - 1
        stripes = (BLOCK if whole else size - 1 - place) // STRIPE
        for stripe in range(stripes):
            _gather(lanes, text, place + STRIPE * stripe, 8 * stripe)
        if whole:
            keys = unpack_from("<8Q", SECRET, 128)
            lanes = [((lane ^ lane >> 47 ^ key) * P32_1) & ALL for lane, key in zip(lanes, keys, strict=True)]
    _gather(lanes, text, size - STRIPE, 121)
    return _merged(lanes, 11, size * P64_1), _merged(lanes, 117, ~(size * P64_2))


def _gather(lanes: list[int], text: bytes, place: int, key: int) -> None:
    words, keys = unpack_from("<8Q", text, place), unpack_from("<8Q", SECRET, key)
    for lane in range(8):
        keyed = words[lane] ^ keys[lane]
        lanes[lane ^ 1] = (lanes[lane ^ 1] + words[lane]) & ALL
        lanes[lane] = (lanes[lane] + (keyed & 0xFFFFFFFF) * (keyed >> 32)) & ALL


def _merged(lanes: list[int], key: int, start: int) -> int:
    keys = unpack_from("<8Q", SECRET, key)
    pairs = (_folded(lanes[i] ^ keys[i], lanes[i + 1] ^ keys[i + 1]) for i in range(0, 8, 2))
    return _stirred((start + sum(pairs)) & ALL)


def _folded(one: int, other: int) -> int:
    product = one * other
    return product & ALL ^ product >> 64


def _stirred(value: int) -> int:
    value = ((value ^ value >> 37) * MIX_1) & ALL
    return value ^ value >> 32


def _settled(value: int) -> int:
    """As its elder of 64 bits ends."""
    value = ((value ^ value >> 33) * P64_2) & ALL
    value = ((value ^ value >> 29) * P64_3) & ALL
    return value ^ value >> 32


def _word(text: bytes, place: int) -> int:
    return int.from_bytes(text[place : place + 4], "little")


def _long_word(text: bytes, place: int) -> int:
    return int.from_bytes(text[place : place + 8], "little")


def _secret(place: int) -> int:
    return _long_word(SECRET, place)
