"""What SpiderCast's nodes send each other, beside profiles (`systems/gossip/messages`).

Tasks are numbers: 0 is the greedy one, 1 the random one. Strangers may send anything: what has a number out of its
range is ignored, and whoever asks for more than a node gives anybody is counted (`Peer.excesses`).
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from typing import ClassVar

import msgspec

from grapevine.systems.contracts.peer import Address, Message
from grapevine.systems.gossip.messages import MOST_VERSIONS, WORDS

GREEDY_TASK, RANDOM_TASK = TASKS = range(2)
MOST_DEGREE = 1 << 31  # degrees and targets are below it
MOST_SOUGHT = 16  # topics in a question
MOST_HOPS = 16  # that a question may have left
MOST_FOUND = 64  # nodes in an answer


class Descriptor(msgspec.Struct, frozen=True, gc=False, array_like=True):
    """What is known of a node, its topics aside. The node makes it, others pass it on with its age."""

    node: Address
    version: int  # of its profile: who has another one asks for the topics
    topic_count: int  # topics in that version
    age_s: float = 0.0  # how long ago somebody last heard of it

    def is_sound(self) -> bool:
        """False if a number is out of its range. Checked before anything else looks at the descriptor."""
        profile = 0 <= self.version < MOST_VERSIONS and 0 <= self.topic_count < WORDS
        return profile and 0 <= self.node < WORDS and math.isfinite(self.age_s) and self.age_s >= 0


class Standing(msgspec.Struct, frozen=True, gc=False, array_like=True):
    """How a node stands in one of its tasks: by these, neighbours know what it can spare (Fig. 1)."""

    degree: int
    target: int  # L

    def is_sound(self) -> bool:
        """False if a number is out of its range."""
        return 0 <= self.degree < MOST_DEGREE and 0 <= self.target < MOST_DEGREE


# Membership


class Sample(Message, frozen=True):
    """Newscast: the sender's cache of random nodes, and itself. To a random member of it every `sample_rounds`.

    Both keep the freshest of both caches. A node that knows nobody sends it to its contacts, with itself alone. The
    receiver of a question answers with its own; if no answer comes, the next round asks somebody else.
    """

    descriptors: tuple[Descriptor, ...]
    is_answer: bool

    def named(self) -> Iterable[Address]:
        return (descriptor.node for descriptor in self.descriptors)


class WhoElse(Message, frozen=True):
    """Who else has these topics? A question for subscribers of topics of which the seeker knows too few (`seeking`).

    To a random node, which tells the seeker whom it knows and passes the question on, one hop less, for what is still
    open. If it is lost, the seeker asks again, somebody else.
    """

    seeker: Descriptor
    topics: tuple[int, ...]
    hops: int  # that it may still travel

    def named(self) -> Iterable[Address]:
        return (self.seeker.node,)


class Found(Message, frozen=True):
    """The answer to `WhoElse`, to the seeker: nodes that have some of these topics, as far as the sender knows.

    The receiver asks the sender for their profiles, or themselves, and believes no more than these say. What it did not
    ask for is ignored.
    """

    topics: tuple[int, ...]
    descriptors: tuple[Descriptor, ...]

    def named(self) -> Iterable[Address]:
        return (descriptor.node for descriptor in self.descriptors)


# Agreement on links (see `links`). The names are those of Fig. 4


class Connect(Message, frozen=True):
    """The sender wants a link in a task. Answered by ConnectOk, by Redirect, or by silence when nobody can be named."""

    task: int
    me: Descriptor
    standing: Standing


class ConnectOk(Message, frozen=True):
    """The sender holds the link that the receiver asked for. Who does not want it any more answers with Leave."""

    task: int
    me: Descriptor
    standing: Standing


class Redirect(Message, frozen=True):
    """The sender has no room, and names one of its neighbours that has: the receiver asks it next."""

    task: int
    node: Address

    def named(self) -> Iterable[Address]:
        return (self.node,)


class Disconnect(Message, frozen=True):
    """The sender can do without the link in a task. Answered by DisconnectOk, or by silence: then the link stays."""

    task: int


class DisconnectOk(Message, frozen=True):
    """The sender no longer holds the link that the receiver wanted to be rid of."""

    task: int


class Leave(Message, frozen=True):
    """The sender does not hold a link in these tasks, whatever the receiver thinks. No answer."""

    tasks: tuple[int, ...]


class Heartbeat(Message, frozen=True):
    """To every neighbour in every round: the sender is there, and holds the link in these tasks.

    What it does not name is over, unless it is so new that the sender could not know (`links`). It brings the sender's
    degrees and targets and the version of its profile: a receiver that has another one asks for it.
    """

    me: Descriptor
    tasks: tuple[int, ...]
    standings: tuple[Standing, Standing]


# Events


class Notify(Message, frozen=True):
    """An event: to all neighbours that want its topic. Who wants it passes a new one on. Nothing is repeated."""

    carries_event: ClassVar[bool] = True

    topic: int
    sequence: int  # the publisher's number of it in this topic
    publisher: Address
    payload: bytes

    def is_sound(self) -> bool:
        """False if a number is out of its range. Such an event is dropped before it is noted as seen."""
        return 0 <= self.topic < WORDS and 0 <= self.publisher < WORDS and 0 <= self.sequence < MOST_VERSIONS
