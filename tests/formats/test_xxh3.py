import random

import pytest
import xxhash

from jobsight.formats import xxh3

# Every way through the algorithm begins or ends at one of these lengths.
EDGES = [0, 1, 3, 4, 8, 9, 16, 17, 32, 33, 64, 65, 96, 97, 128, 129, 159, 160, 191, 192, 240, 241, 1024, 1025, 1088]


@pytest.mark.parametrize("size", EDGES)
def test_bytes_hash_as_the_reference_library_hashes_them(size: int) -> None:
    for seed in range(5):
        text = random.Random(seed).randbytes(size)
        assert xxh3.digest(text) == xxhash.xxh3_128_digest(text)


def test_random_lengths_hash_as_the_reference_library_hashes_them() -> None:
    chance = random.Random(3)
    texts = [chance.randbytes(chance.randint(0, 2000)) for _ in range(500)]
    assert [xxh3.digest(text) for text in texts] == [xxhash.xxh3_128_digest(text) for text in texts]
