"""How topics travel, and the messages in which nodes tell each other what they want.

A node may have a hundred thousand topics, so these travel apart from descriptors, and as bytes: ascending 64-bit
numbers, in parts that fit a frame. Strangers may send anything: what has a number out of its range is ignored, and
whoever asks for more than a node gives anybody is counted (`Peer.excesses`).
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import msgspec
import numpy as np
from numpy.typing import NDArray

from grapevine.systems.contracts.peer import Address, Message

WORDS = 1 << 64  # addresses and topics are below it
MOST_VERSIONS = 1 << 62  # versions, serials and sequence numbers are below it
MOST_DESCRIPTORS = 1_000  # of which a message is believed
MOST_TOPICS = 1_000_000  # that any node of any network has: who announces more is blamed
TOPICS_A_PART = 16_384  # 128 KiB

Topics = NDArray[np.uint64]
TOPIC = np.dtype("<u8")


def pack(topics: Topics) -> bytes:
    """Ascending topics as they travel; the inverse of `unpack`."""
    return topics.astype(TOPIC, copy=False).tobytes()


def unpack(content: bytes) -> Topics:
    """Topics that came, ascending and each once; none if the bytes cannot be a part."""
    if len(content) % TOPIC.itemsize or len(content) > TOPICS_A_PART * TOPIC.itemsize:
        return np.empty(0, np.uint64)
    return np.unique(np.frombuffer(content, TOPIC).astype(np.uint64, copy=False))


def parts(items: NDArray[Any], size: int) -> Iterator[NDArray[Any]]:
    """These in parts of at most this size; of nothing there is one empty part."""
    for start in range(0, max(len(items), 1), size):
        yield items[start : start + size]


class Want(msgspec.Struct, frozen=True, gc=False, array_like=True):
    """A profile that is asked for, and what the asker has of it."""

    node: Address  # whose profile it is
    version: int  # that the asker has; 0: none


class Ask(Message, frozen=True):
    """A request for profiles: to a neighbour for its own, or to whoever described a stranger for that one's.

    The receiver answers with `Profile` messages for those that it knows in a later version, and is silent about others.
    A question that is not answered within a few rounds is asked again, of the node itself in the end.
    """

    wants: tuple[Want, ...]


class Profile(Message, frozen=True):
    """The answer to `Ask`: the topics of a node, or what has changed in them since a version that the asker has.

    Taken only from whom the profile was asked, and only when its parts make the set that they announce. What does not
    fit is dropped, and the profile is asked for again.
    """

    node: Address
    version: int  # that this makes, with the other parts
    base: int  # the version that has to be changed; 0: these are all topics
    part: int  # of the topics, from 0; a change always is one part
    parts: int
    topic_count: int  # in the version that this makes
    checksum: int  # of these topics (`interests.checksum`)
    added: bytes  # topics that are new, or new again
    removed: bytes = b""  # of a change: topics that are no longer there
    rated: bytes = b""  # of a change: topics that stay, and have another rate now
    rates: bytes = b""  # of the added topics, then of the rated (`rates.pack_weights`); empty: all weigh alike

    def is_sound(self, most_topics: int) -> bool:
        """False if a number is out of its range, or the parts cannot make so many topics. Checked before all else."""
        numbers = 0 <= self.version < MOST_VERSIONS and 0 <= self.base < MOST_VERSIONS and self.topic_count >= 0
        return (
            numbers
            and self.topic_count <= most_topics
            and self.parts == (1 if self.base else max(-(-self.topic_count // TOPICS_A_PART), 1))
            and 0 <= self.part < self.parts
        )
