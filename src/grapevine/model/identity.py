"""Keys: who published an event, so that nobody else can (Ed25519)."""

from __future__ import annotations

import struct
from collections.abc import Callable, Mapping
from hashlib import blake2b

from cryptography.exceptions import InvalidSignature
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey, Ed25519PublicKey


def key_from(secret: str) -> Ed25519PrivateKey:
    """The private key that belongs to a secret text; for simulations, where the secret is the seed."""
    return Ed25519PrivateKey.from_private_bytes(blake2b(secret.encode(), digest_size=32).digest())


class EventSignatures:
    """Signs events with the keys that this node has, and checks them with those of the topics' publishers."""

    def __init__(self, own: Mapping[int, Ed25519PrivateKey], publisher: Callable[[int], Ed25519PublicKey]) -> None:
        self._own, self._publisher = own, publisher

    def sign(self, topic: int, sequence: int, payload: bytes) -> bytes:
        """The publisher's signature over topic, sequence and payload."""
        return self._own[topic].sign(_content(topic, sequence, payload))

    def verify(self, topic: int, sequence: int, payload: bytes, signature: bytes) -> bool:
        """Whether the topic's publisher signed this."""
        try:
            self._publisher(topic).verify(signature, _content(topic, sequence, payload))
        except (InvalidSignature, struct.error):  # no publisher signs a number that does not fit
            return False
        return True


def _content(topic: int, sequence: int, payload: bytes) -> bytes:
    return struct.pack(">QQ", topic, sequence) + payload
