"""What Trellis' nodes send each other.

Neighbours keep each other informed by **facts**: a fact is of a kind and about a topic, and a node tells a neighbour
either one fact of a kind about a topic, or none. An `Update` has those that changed since the last one (`channel`), so
a profile is told once, a label when it changes, and nothing while all is as it was. All else is said to nodes that are
no neighbours (yet): gossip, cards and the handshake by which a link begins and ends. Strangers may send anything: what
has a number out of its range is ignored, and whoever tells more than a node listens to is counted (`Peer.excesses`).
"""

from __future__ import annotations

import math
from array import array
from collections.abc import Iterable
from sys import byteorder
from typing import ClassVar

import msgspec

from grapevine.systems.contracts.peer import Address, Message

WORDS = 1 << 64  # addresses, topics, ranks, and the numbers of links are below it
MOST_COUNT = 1 << 62  # ticks, serials, versions, stamps, hops and sequence numbers are below it
NOBODY = WORDS - 1  # in a card: the root of a topic whose label is not at rest, or is not told
RING, FRIEND = 0, 1  # what a link is asked for


def words(numbers: Iterable[int]) -> bytes:
    """Numbers of 64 bits as they travel; the inverse of `unpacked`."""
    packed = array("Q", numbers)
    if byteorder == "big":
        packed.byteswap()
    return packed.tobytes()


def unpacked(content: bytes) -> list[int]:
    """Numbers that came; none if the bytes cannot be such."""
    if len(content) % 8:
        return []
    packed = array("Q", content)
    if byteorder == "big":
        packed.byteswap()
    return packed.tolist()


# Facts


class Fact(msgspec.Struct, frozen=True, gc=False, array_like=True):
    """Something that a node tells a neighbour about a topic; it holds until the next fact of that kind, or `Gone`."""

    topic: int

    def is_sound(self) -> bool:
        """False if a number is out of its range. Checked before anything looks at the fact."""
        return all(value is None or 0 <= value < WORDS for value in msgspec.structs.astuple(self))


class Label(Fact, frozen=True, tag=1):
    """The sender wants the topic, and this is its label. Without the topic in common only the root is kept up to date.

    Told about all its topics to all neighbours: the labels of a node are its profile, too.
    """

    root: Address
    tick: int = 0
    hops: int = 0  # from the root
    is_child: bool = False  # the receiver is the sender's parent
    has_other_way: bool = False  # the sender would keep its label if the receiver were gone

    def is_sound(self) -> bool:
        return super().is_sound() and self.tick < MOST_COUNT and self.hops < MOST_COUNT


class Wanted(Fact, frozen=True, tag=2):
    """The sender would take the receiver's label if the root made a tick as late as this (`labels`)."""

    root: Address
    tick: int

    def is_sound(self) -> bool:
        return super().is_sound() and self.tick < MOST_COUNT


class Offer(Fact, frozen=True, tag=3):
    """The sender does not want the topic, and is linked to a member of this rank, lower than the receiver's."""

    rank: int


class Best(Fact, frozen=True, tag=4):
    """To the parent: the best offer that the sender, or anybody below it, has got."""

    bridge: Address
    member: Address  # who has got it


class Choice(Fact, frozen=True, tag=5):
    """To the children: the offer that the root has chosen; this member keeps a way through this bridge."""

    bridge: Address
    member: Address


class Carry(Fact, frozen=True, tag=6):
    """A request: exchange the topic's events with the sender, and find a way to a rank below this one.

    The receiver carries them as long as this holds (`ways`). More topics than `most_relays` are refused and counted.
    """

    rank: int
    via: Address | None = None  # the next node of a way that a probe has found


class Carried(Fact, frozen=True, tag=7):
    """The answer to `Carry`: the way ends at this rank, so many nodes on; 0: at the topic's rendezvous."""

    target: int
    steps: int
    is_needed: bool  # somebody is there whom the way joins; if not, no events are sent along it

    def is_sound(self) -> bool:
        return super().is_sound() and self.steps < MOST_COUNT


class Gone(Fact, frozen=True, tag=8):
    """What the sender told of this kind about the topic holds no more."""

    kind: int  # its place in `KINDS`


KINDS: tuple[type[Fact], ...] = (Label, Wanted, Offer, Best, Choice, Carry, Carried)
AnyFact = Label | Wanted | Offer | Best | Choice | Carry | Carried | Gone


# Links (see `links`)


class Connect(Message, frozen=True):
    """A request for a link. The receiver answers with `Accept`, `Refuse`, or not at all; then the sender gives up.

    Topics and roots are the sender's, so that the receiver can judge what the link is worth.
    """

    nonce: int  # of this request
    kind: int  # RING or FRIEND
    stamp: int  # the sender's clock
    gain: float = 0.0  # what the link is worth to the sender
    value: float = 0.0  # of the link that the sender would give up for it; 0: it has room
    margin: float = 0.0  # by which both have to win more than they lose, as the sender sees it
    topics: bytes = b""
    roots: bytes = b""

    def is_sound(self) -> bool:
        """False if a number is out of its range. Checked before anything else looks at the request."""
        numbers = 0 <= self.nonce < WORDS and self.kind in (RING, FRIEND) and 0 <= self.stamp < MOST_COUNT
        worth = all(0 <= value < math.inf for value in (self.gain, self.value, self.margin))
        return numbers and worth and len(self.topics) == len(self.roots)


class Accept(Message, frozen=True):
    """The answer to `Connect`: a slot is held. The link is there when the first `Update` has come from who asked."""

    nonce: int  # of the request
    link: int  # the number of the link from now on
    stamp: int
    echo: int  # the stamp of the request


class Refuse(Message, frozen=True):
    """The answer to `Connect`: no. On the ring somebody else is nearer to the sender."""

    nonce: int
    instead: tuple[Address, ...] = ()  # on the ring: whom to ask; one at most is read

    def named(self) -> Iterable[Address]:
        return self.instead


class Disconnect(Message, frozen=True):
    """The link of this number is over, or was never there. Repeated until it is answered with `Disconnected`."""

    link: int


class Disconnected(Message, frozen=True):
    """The answer to `Disconnect`: the receiver's slot is free."""

    link: int


class Update(Message, frozen=True):
    """To a neighbour: what has changed, or nothing, as a sign of life (`channel`).

    The receiver answers with an update of its own, which it may owe anyway.
    """

    link: int
    stamp: int  # the sender's clock, in ms since its session began
    echo: int  # the last stamp that came from the receiver
    serial: int  # of these facts; 0: there are none, and nothing to confirm
    ack: int  # the serial of the last facts that came from the receiver
    version: int  # of the sender's card
    facts: tuple[AnyFact, ...] = ()
    links: tuple[Address, ...] | None = None  # the sender's neighbours; None: as before

    def is_sound(self) -> bool:
        """False if a number is out of its range. Checked before anything is taken from the update."""
        return all(0 <= n < MOST_COUNT for n in (self.stamp, self.echo, self.serial, self.ack, self.version))


# Gossip (see `acquaintances`)


class Descriptor(msgspec.Struct, frozen=True, gc=False, array_like=True):
    """That a node is there. It makes this itself, others pass it on with its age."""

    node: Address
    version: int  # of its card
    topic_count: int = 0  # on it
    age_s: float = 0.0  # since somebody last heard of it

    def is_sound(self) -> bool:
        """False if a number is out of its range. Checked before anything else looks at the descriptor."""
        numbers = 0 <= self.version < MOST_COUNT and 0 <= self.topic_count < WORDS and 0 <= self.age_s < math.inf
        return numbers and 0 <= self.node < WORDS


class Sample(Message, frozen=True):
    """Newscast: the sender's cache of random nodes, and itself. The receiver of a question answers with its own."""

    descriptors: tuple[Descriptor, ...]
    is_answer: bool

    def named(self) -> Iterable[Address]:
        return (descriptor.node for descriptor in self.descriptors)


class Want(msgspec.Struct, frozen=True, gc=False, array_like=True):
    """A card that is asked for."""

    node: Address
    version: int  # that the asker has; 0: none


class Ask(Message, frozen=True):
    """A request for cards: of neighbours of the receiver, of nodes that it described, or its own.

    The receiver answers with a `Cards` of those that it knows in a later version; it is silent if it knows none.
    """

    wants: tuple[Want, ...]


class Card(msgspec.Struct, frozen=True, gc=False, array_like=True):
    """What a node is worth as a friend: its topics (of very many, those with the lowest hashes) and their roots."""

    node: Address
    version: int
    topics: bytes
    roots: bytes  # of the topics, in their order; NOBODY: the label is not at rest

    def is_sound(self, most_topics: int) -> bool:
        """False if a number is out of its range. Checked before anything else looks at the card."""
        fits = len(self.topics) == len(self.roots) <= 8 * most_topics
        return fits and 0 <= self.node < WORDS and 0 <= self.version < MOST_COUNT


class Cards(Message, frozen=True):
    """The answer to `Ask`."""

    cards: tuple[Card, ...]

    def named(self) -> Iterable[Address]:
        return (card.node for card in self.cards)


# Ways (see `probes`)


class Sought(msgspec.Struct, frozen=True, gc=False, array_like=True):
    """A cluster that looks for a way, or how one was found."""

    topic: int
    rank: int  # of the cluster that looks; in an answer, the lower one that is reached
    relays: int = 0  # in an answer: how many nodes the way takes that do not carry the topic yet

    def is_sound(self) -> bool:
        """False if a number is out of its range. Checked before anything else looks at it."""
        return 0 <= self.topic < WORDS and 0 <= self.rank < WORDS and 0 <= self.relays < MOST_COUNT


class Probe(Message, frozen=True):
    """A question: who is next to members of these topics with lower ranks? From the root of clusters without bridges.

    To all neighbours, who pass it on to theirs; these answer, by the way that it came.
    """

    asker: Address
    sought: tuple[Sought, ...]
    is_second: bool  # it was passed on


class Found(Message, frozen=True):
    """The answer to a `Probe`: a way leads through the sender, or through the sender and then `via`."""

    asker: Address
    found: tuple[Sought, ...]
    via: Address | None = None  # of an answer that was passed back: who gave it


# Events (see `blocks/lazy_push`)


class Event(Message, frozen=True):
    """An event: along the topic's eager links; from a node that is not in the topic, towards the rendezvous.

    The receiver passes a new event on and delivers it to a subscriber; what it has had it answers with `Prune`.
    """

    carries_event: ClassVar[bool] = True

    topic: int
    sequence: int  # the publisher's number of it in this topic
    publisher: Address
    payload: bytes
    hops: int = 0  # from the publisher
    lookup: bool = False  # sent towards the rendezvous by a node outside the topic

    def is_sound(self) -> bool:
        """False if a number is out of its range. Such an event is dropped before it is noted as seen."""
        numbers = 0 <= self.sequence < MOST_COUNT and 0 <= self.hops < MOST_COUNT
        return numbers and 0 <= self.topic < WORDS and 0 <= self.publisher < WORDS


class Id(msgspec.Struct, frozen=True, gc=False, array_like=True):
    """The name of an event, and how far it had come."""

    topic: int
    publisher: Address
    sequence: int
    hops: int

    def is_sound(self) -> bool:
        """False if a number is out of its range."""
        numbers = 0 <= self.sequence < MOST_COUNT and 0 <= self.hops < MOST_COUNT
        return numbers and 0 <= self.topic < WORDS and 0 <= self.publisher < WORDS


class IHave(Message, frozen=True):
    """Along lazy links, some at a time: events that the sender has. Who lacks one asks for it a moment later."""

    ids: tuple[Id, ...]


class Prune(Message, frozen=True):
    """These topics' events came twice: the link between sender and receiver is lazy for them from now on."""

    topics: tuple[int, ...]


class Graft(Message, frozen=True):
    """The sender lacks these events: their topics' links are eager again, and the receiver sends what it has.

    Of topics alone it has everything, but would rather get events from the receiver, as that is nearer.
    """

    ids: tuple[Id, ...]
    topics: tuple[int, ...] = ()
