"""What Vitis' nodes send each other.

A node may have a hundred thousand topics, so these travel apart from descriptors, and as bytes: ascending 64-bit
numbers, or records, in parts that fit a frame. Strangers may send anything: what has a number out of its range is
ignored, and whoever asks for more than a node gives anybody is counted (`Peer.excesses`).
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from typing import Any, ClassVar

import msgspec
import numpy as np
from numpy.typing import NDArray

from grapevine.model.ids import RING_SIZE
from grapevine.systems.contracts.peer import Address, Message
from grapevine.systems.gossip.messages import MOST_VERSIONS, WORDS

MOST_HOPS = 1_000  # far beyond any reach of gateways
PROPOSALS_A_PART = 4_096  # 136 KiB

Records = NDArray[Any]
PROPOSAL = np.dtype(  # whom a member proposes as the gateway of a topic, and from whom it has that (Algorithm 5)
    [("topic", "<u8"), ("gateway", "<u8"), ("gateway_id", "<u8"), ("parent", "<u8"), ("hops", "<u2")]
)


def unpack_proposals(content: bytes) -> Records:
    """Proposals that came, by ascending topic; those that cannot be what they stand for are left out."""
    if len(content) % PROPOSAL.itemsize or len(content) > PROPOSALS_A_PART * PROPOSAL.itemsize:
        return np.empty(0, PROPOSAL)
    made = np.frombuffer(content, PROPOSAL)
    made = made[made["hops"] < MOST_HOPS]
    return made[np.unique(made["topic"], return_index=True)[1]]


class Descriptor(msgspec.Struct, frozen=True, gc=False, array_like=True):
    """What is known of a node, its topics aside. The node makes it, others pass it on with its age."""

    node: Address
    ring_id: int
    version: int  # of its profile: who has another one asks for the topics
    topic_count: int  # topics in that version
    up_s: float  # for how long its session had lasted when somebody last heard of it
    age_s: float = 0.0  # how long ago that is

    def is_sound(self) -> bool:
        """False if a number is out of its range. Checked before anything else looks at the descriptor."""
        seconds = math.isfinite(self.up_s) and math.isfinite(self.age_s) and self.up_s >= 0 and self.age_s >= 0
        profile = 0 <= self.version < MOST_VERSIONS and 0 <= self.topic_count < WORDS
        return seconds and profile and 0 <= self.node < WORDS and 0 <= self.ring_id < RING_SIZE


# Gossip


class Sample(Message, frozen=True):
    """Newscast: the sender's cache of random nodes, and itself. To a random member of it every `sample_rounds`.

    Both keep the freshest of both caches. A node that knows nobody sends it to its contacts, with itself alone. The
    receiver of a question answers with its own; if no answer comes, the next round asks somebody else.
    """

    descriptors: tuple[Descriptor, ...]
    is_answer: bool

    def named(self) -> Iterable[Address]:
        return (descriptor.node for descriptor in self.descriptors)


class Exchange(Message, frozen=True):
    """T-Man: the sender's table, samples and ring backups, and itself (Algorithms 2 and 3). To a neighbour every round.

    The receiver of a question answers with its own. Both choose their next tables from what they have got. If no answer
    comes, the sender chooses from less.
    """

    descriptors: tuple[Descriptor, ...]
    is_answer: bool

    def named(self) -> Iterable[Address]:
        return (descriptor.node for descriptor in self.descriptors)


class Goodbye(Message, frozen=True):
    """To all neighbours, from a node that leaves in good order. The receiver forgets it and what it proposed.

    If it is lost, the receiver notices the silence after `max_age` rounds.
    """


# Agreement on gateways (see `agreement`)


class Heartbeat(Message, frozen=True):
    """To every neighbour in every round (Algorithm 6): the sender is there, and what is new in its proposals.

    Proposals that changed go in as many heartbeats as they need, and in one when there are none. The receiver notes
    that the sender is alive and chooses gateways again where a proposal has changed. Heartbeats to one neighbour have
    serials without gaps, so that the receiver notices when one was lost.
    """

    sender: Descriptor  # of the sender; otherwise the message is ignored
    is_link: bool  # the sender has the receiver in its table; if not, the link is the receiver's choice alone
    repeat: bool  # the sender has missed some of the receiver's heartbeats, and wants to have everything again
    session: int  # of the sender, drawn at random: serials of different sessions have nothing to do with each other
    complete_from: int  # heartbeats with this serial and those that follow say everything; earlier ones do not matter
    serial: int
    proposals: bytes = b""  # records of PROPOSAL, for topics that both have, as far as the sender knows
    withdrawn: bytes = b""  # topics that the sender no longer has, so that its proposals for them are void

    def is_sound(self) -> bool:
        """False if a serial is out of its range. Checked before anything is taken from the message."""
        return 0 <= self.complete_from <= self.serial < MOST_VERSIONS


# Events


class Relay(Message, frozen=True):
    """A request to carry these topics' events to and from the sender (Algorithm 5, line 21).

    From a gateway, or a node on the way from one to the rendezvous, to the next hop of the lookup, every
    `relay_rounds`. The receiver carries them for a while and passes the request on, until it reaches the rendezvous. A
    path that is not renewed ends by itself. More topics than `most_relays` of one neighbour are refused and counted.
    """

    topics: bytes
    rendezvous: int = 0  # to which of the topics' rendezvous (`paths`); who has fewer ignores the request


class Notify(Message, frozen=True):
    """An event: to all neighbours that want the topic or are on a relay path of it.

    A node that neither wants nor carries the topic sends it to the next hop towards the rendezvous instead. The
    receiver passes a new event on and delivers it to a subscriber; what it has had is dropped. Nothing is repeated.
    """

    carries_event: ClassVar[bool] = True

    topic: int
    sequence: int  # the publisher's number of it in this topic
    publisher: Address
    payload: bytes
    lookup: bool = False  # sent towards the rendezvous by a node outside the topic; for observers, receivers ignore it

    def is_sound(self) -> bool:
        """False if a number is out of its range. Such an event is dropped before it is noted as seen."""
        return 0 <= self.topic < WORDS and 0 <= self.publisher < WORDS and 0 <= self.sequence < MOST_VERSIONS
