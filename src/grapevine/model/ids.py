"""The identifier ring: 64 bits, filled by SHA-1 (Vitis §III: one hash function for nodes and topics alike).

For Python's whole numbers; kernels have `kernels/ring`, and the tests hold the two together.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

RING_BITS = 64
RING_SIZE = 1 << RING_BITS


def ring_id(name: str) -> int:
    """The first 64 bits of SHA-1(name), as an unsigned integer."""
    return int.from_bytes(hashlib.sha1(name.encode(), usedforsecurity=False).digest()[:8], "big")


def ring_ids(kind: str, names: Iterable[str]) -> NDArray[np.uint64]:
    """Ring ids of many names of one kind (`node` or `topic`).

    The kind is hashed with the name. In a social trace a user is both a node and a topic; were both hashed
    alike, every topic would have its own publisher as rendezvous, which no paper assumes.
    """
    import numpy as np  # here, since a live node names topics one by one

    begun = hashlib.sha1(f"{kind}:".encode(), usedforsecurity=False)
    hashed = bytearray()
    for name in names:
        digest = begun.copy()
        digest.update(name.encode())
        hashed += digest.digest()[:8]
    return np.frombuffer(hashed, ">u8").astype(np.uint64)


def clockwise(start: int, end: int) -> int:
    """Steps from start to end in the direction of growing ids: 0 … 2^64-1."""
    return (end - start) % RING_SIZE


def distance(a: int, b: int) -> int:
    """Steps of the shorter way round the ring: 0 … 2^63."""
    steps = clockwise(a, b)
    return min(steps, RING_SIZE - steps)
