"""Keys and signatures: who a peer is, and who published an event (Ed25519). All that is done with keys is done here.

A peer is its key. Its id is the hash of the public one, 256 bits long; protocols, which want small numbers, use the
first 64 bits of it as address. Among n peers two share an address by accident with a probability of n²/2^65 (3e-8 for a
million), but two with the same address can be made on purpose in some 2^32 attempts, and one with a given address in
2^64. So an address is good for routing, and only the whole id says who somebody is: connections and signatures are
checked against that, and who already knows a peer by an address refuses another one under it.
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from hashlib import blake2b

import msgspec
from cryptography.exceptions import InvalidSignature, UnsupportedAlgorithm
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey, Ed25519PublicKey

from grapevine.model.errors import PeerError, UsageError

ID_BYTES = 32
ADDRESS_BYTES = 8
KEY_BYTES = 32
SIGNATURE_BYTES = 64
SEAL_BYTES = KEY_BYTES + SIGNATURE_BYTES

# A key that also signs handshakes must never sign one by mistake: TLS 1.3 begins what it signs with 64 spaces.
_EVENT = b"grapevine event 1\0"


@dataclass(frozen=True, slots=True, order=True)
class PeerId:
    """Who a peer is: the hash of its public key. Two ids are equal exactly if all 256 bits are."""

    full: bytes  # 32 bytes; UsageError for another length

    def __post_init__(self) -> None:
        if len(self.full) != ID_BYTES:
            raise UsageError(f"a peer id of {len(self.full)} bytes was given; it has {ID_BYTES}")

    @classmethod
    def of(cls, public: bytes) -> PeerId:
        """The id of the peer with this public key."""
        return cls(blake2b(public, digest_size=ID_BYTES, person=b"grapevine peer").digest())

    @classmethod
    def parse(cls, text: str) -> PeerId:
        """The id that people write down as 64 hexadecimal digits; UsageError for any other text."""
        try:
            return cls(bytes.fromhex(text))
        except (ValueError, UsageError):
            raise UsageError(f"{text!r} is no peer id; give the {2 * ID_BYTES} hexadecimal digits of one") from None

    @property
    def address(self) -> int:
        """The number by which protocols know the peer: the first 64 bits of the id, good for routing alone."""
        return int.from_bytes(self.full[:ADDRESS_BYTES], "big")

    @property
    def short(self) -> str:
        """The first digits of the id, for lines that people read; too few to tell everybody apart."""
        return self.full[:4].hex()

    def __str__(self) -> str:
        return self.full.hex()

    def __repr__(self) -> str:
        return f"PeerId({self})"


def new_key() -> Ed25519PrivateKey:
    """A new private key, from the system's randomness."""
    return Ed25519PrivateKey.generate()


def key_from(secret: str) -> Ed25519PrivateKey:
    """The private key that belongs to a secret text, always the same; for simulations, where the secret is the seed."""
    return Ed25519PrivateKey.from_private_bytes(blake2b(secret.encode(), digest_size=32).digest())


def key_to_pem(key: Ed25519PrivateKey) -> bytes:
    """The private key as the content of a file (PEM, not encrypted: the file's mode protects it)."""
    encoding, form = serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8
    return key.private_bytes(encoding, form, serialization.NoEncryption())


def key_from_pem(content: bytes) -> Ed25519PrivateKey | None:
    """The private key in a file's content; None if it holds no Ed25519 key that can be read."""
    try:
        key = serialization.load_pem_private_key(content, password=None)
    except (ValueError, TypeError, UnsupportedAlgorithm):  # a TypeError asks for a password
        return None
    return key if isinstance(key, Ed25519PrivateKey) else None


def public_bytes(key: object) -> bytes | None:
    """The 32 bytes of a public key; None if it is of another kind than ours."""
    return key.public_bytes_raw() if isinstance(key, Ed25519PublicKey) else None


def is_signed(public: bytes, content: bytes, signature: bytes) -> bool:
    """Whether the owner of this public key signed the content; False also for keys and signatures that are none."""
    try:
        Ed25519PublicKey.from_public_bytes(public).verify(signature, content)
    except (InvalidSignature, ValueError):
        return False
    return True


class EventSignatures:
    """Signatures of events whose topic has one publisher with a known key, as in simulations of Rappel.

    `own` has the private keys of the topics that this node publishes, `publisher` gives any topic's public key.
    """

    def __init__(self, own: Mapping[int, Ed25519PrivateKey], publisher: Callable[[int], Ed25519PublicKey]) -> None:
        self._own, self._publisher = own, publisher

    def sign(self, topic: int, sequence: int, payload: bytes) -> bytes:
        """The signature of this node's event over topic, sequence and payload; KeyError without a key of the topic."""
        return self._own[topic].sign(_content(topic, sequence, payload))

    def verify(self, topic: int, sequence: int, payload: bytes, signature: bytes) -> bool:
        """Whether the topic's publisher signed exactly this event."""
        try:
            self._publisher(topic).verify(signature, _content(topic, sequence, payload))
        except (InvalidSignature, struct.error):  # no publisher signs a number that does not fit
            return False
        return True


def _content(topic: int, sequence: int, payload: bytes) -> bytes:
    return struct.pack(">QQ", topic, sequence) + payload


class SignedEvent(msgspec.Struct, frozen=True, gc=False, array_like=True):
    """An event that anybody can check: it carries its publisher's public key, whose hash is the publisher's id."""

    key: bytes  # the publisher's public key, 32 bytes
    topic: int
    sequence: int  # counts a publisher's events in a topic, from 1
    payload: bytes
    signature: bytes  # over all of the above but the key, 64 bytes

    @classmethod
    def sign(cls, private: Ed25519PrivateKey, topic: int, sequence: int, payload: bytes) -> SignedEvent:
        """An event of the owner of this key; UsageError if topic or sequence do not fit 64 bits."""
        try:
            signature = private.sign(_EVENT + _content(topic, sequence, payload))
        except struct.error:
            raise UsageError(f"event {sequence} of topic {topic} cannot be signed; numbers have 64 bits") from None
        return cls(private.public_key().public_bytes_raw(), topic, sequence, payload, signature)

    @classmethod
    def unseal(cls, topic: int, sequence: int, payload: bytes, seal: bytes) -> SignedEvent:
        """An event as it came from another node, not checked yet; PeerError if the seal has a wrong length."""
        if len(seal) != SEAL_BYTES:
            raise PeerError(f"an event came with a seal of {len(seal)} bytes; key and signature take {SEAL_BYTES}")
        return cls(seal[:KEY_BYTES], topic, sequence, payload, seal[KEY_BYTES:])

    @property
    def seal(self) -> bytes:
        """Key and signature in one, for messages and tables that have one field for them."""
        return self.key + self.signature

    @property
    def publisher(self) -> PeerId:
        """The owner of the key that the event carries; `check` says whether that peer signed it."""
        return PeerId.of(self.key)

    def check(self, expected: PeerId | None = None) -> PeerId:
        """The publisher, if it signed this event and is the expected one; PeerError otherwise. Every hop calls this."""
        publisher = self.publisher
        if expected is not None and publisher != expected:
            raise PeerError(f"event {self.sequence} of topic {self.topic} is by {publisher}, not by {expected}")
        try:
            key = Ed25519PublicKey.from_public_bytes(self.key)
            key.verify(self.signature, _EVENT + _content(self.topic, self.sequence, self.payload))
        except (InvalidSignature, ValueError, struct.error):
            raise PeerError(f"event {self.sequence} of topic {self.topic} is not signed by {publisher}") from None
        return publisher
