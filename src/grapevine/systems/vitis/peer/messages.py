"""What Vitis' nodes say to each other.

A node may have a hundred thousand topics, so these travel apart from descriptors, and as bytes: ascending 64-bit
numbers, or records, in parts that fit a frame.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator
from typing import Any, ClassVar

import msgspec
import numpy as np
from numpy.typing import NDArray

from grapevine.model.ids import RING_SIZE
from grapevine.systems.contracts.peer import Address, Message

WORDS = 1 << 64  # addresses and topics are below it
MOST_VERSIONS = 1 << 62  # a profile changes less often
MOST_HOPS = 1_000  # far beyond any reach of gateways
MOST_DESCRIPTORS = 1_000  # of which a message is believed
TOPICS_A_PART = 16_384  # 128 KiB
PROPOSALS_A_PART = 4_096  # 136 KiB

Topics = NDArray[np.uint64]
Records = NDArray[Any]
TOPIC = np.dtype("<u8")
PROPOSAL = np.dtype(  # whom a member proposes as the gateway of a topic (Algorithm 5)
    [("topic", "<u8"), ("gateway", "<u8"), ("gateway_id", "<u8"), ("parent", "<u8"), ("hops", "<u2")]
)


def pack(topics: Topics) -> bytes:
    """Topics as they travel."""
    return topics.astype(TOPIC, copy=False).tobytes()


def unpack(told: bytes) -> Topics:
    """Topics that came, ascending and each once; none if the bytes cannot be a part."""
    if len(told) % TOPIC.itemsize or len(told) > TOPICS_A_PART * TOPIC.itemsize:
        return np.empty(0, np.uint64)
    return np.unique(np.frombuffer(told, TOPIC).astype(np.uint64, copy=False))


def unpack_proposals(told: bytes) -> Records:
    """Proposals that came, by ascending topic; those that cannot be what they stand for are left out."""
    if len(told) % PROPOSAL.itemsize or len(told) > PROPOSALS_A_PART * PROPOSAL.itemsize:
        return np.empty(0, PROPOSAL)
    made = np.frombuffer(told, PROPOSAL)
    made = made[made["hops"] < MOST_HOPS]
    return made[np.unique(made["topic"], return_index=True)[1]]


def parts(items: NDArray[Any], size: int) -> Iterator[NDArray[Any]]:
    """These in parts of at most this size; nothing is one empty part."""
    for start in range(0, max(len(items), 1), size):
        yield items[start : start + size]


class Descriptor(msgspec.Struct, frozen=True, gc=False, array_like=True):
    """What is known of a node, its topics aside, and how long ago somebody heard of it."""

    node: Address
    ring_id: int
    version: int  # of its profile
    topics: int  # how many there are in it
    up_s: float  # how long it had been there
    age_s: float = 0.0

    def is_sound(self) -> bool:
        """Whether the numbers can be what they stand for; strangers may send anything."""
        seconds = math.isfinite(self.up_s) and math.isfinite(self.age_s) and self.up_s >= 0 and self.age_s >= 0
        profile = 0 <= self.version < MOST_VERSIONS and 0 <= self.topics < WORDS
        return seconds and profile and 0 <= self.node < WORDS and 0 <= self.ring_id < RING_SIZE


class Sample(Message, frozen=True):
    """Newscast: my cache, and myself."""

    known: tuple[Descriptor, ...]
    answer: bool

    def named(self) -> Iterable[Address]:
        return (told.node for told in self.known)


class Exchange(Message, frozen=True):
    """T-Man: my table, samples and ring backups, and myself (Algorithms 2 and 3)."""

    known: tuple[Descriptor, ...]
    answer: bool

    def named(self) -> Iterable[Address]:
        return (told.node for told in self.known)


class Heartbeat(Message, frozen=True):
    """I am there (Algorithm 6), and this is what I propose now for the topics that we share: what is new of it.

    Messages to one neighbour are numbered, so that it notices when one was lost. From `since` on they tell everything.
    """

    me: Descriptor
    link: bool  # you are in my table
    repeat: bool  # tell me everything again: I missed something
    session: int  # numbers are those of a session
    since: int
    number: int
    proposals: bytes = b""  # PROPOSAL
    withdrawn: bytes = b""  # topics that I want no more

    def is_sound(self) -> bool:
        """The same."""
        return 0 <= self.since <= self.number < MOST_VERSIONS


class Want(msgspec.Struct, frozen=True, gc=False, array_like=True):
    """The profile of a node, of which the asker has this version; 0: none."""

    node: Address
    version: int


class Ask(Message, frozen=True):
    """These profiles, please."""

    wanted: tuple[Want, ...]


class Profile(Message, frozen=True):
    """The topics of a node in one of so many parts, or what changed in them since the version `base`."""

    node: Address
    version: int
    base: int  # 0: these are all topics
    part: int
    parts: int
    count: int  # topics of the version, and their sum, so that nobody puts together what does not fit together
    total: int
    added: bytes
    removed: bytes = b""  # of a change: topics that are no longer there

    def is_sound(self, most_topics: int) -> bool:
        """The same."""
        numbers = 0 <= self.version < MOST_VERSIONS and 0 <= self.base < MOST_VERSIONS and self.count >= 0
        return (
            numbers
            and self.count <= most_topics
            and self.parts == (1 if self.base else max(-(-self.count // TOPICS_A_PART), 1))
            and 0 <= self.part < self.parts
        )


class Relay(Message, frozen=True):
    """Carry these topics to me: I am a gateway, or on the way from one to the rendezvous (Algorithm 5, line 22)."""

    topics: bytes


class Notify(Message, frozen=True):
    """An event."""

    carries_event: ClassVar[bool] = True

    topic: int
    sequence: int
    publisher: Address
    payload: bytes
    lookup: bool = False  # on its way from somebody who neither wants nor carries the topic

    def is_sound(self) -> bool:
        """The same."""
        return 0 <= self.topic < WORDS and 0 <= self.publisher < WORDS and 0 <= self.sequence < MOST_VERSIONS


class Goodbye(Message, frozen=True):
    """I leave."""
