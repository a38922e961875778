"""What Rappel's nodes say to each other. A `feed` is a topic, an `update` one of its events."""

from __future__ import annotations

from collections.abc import Iterable
from typing import ClassVar

from grapevine.systems.contracts.peer import Address, Message

Position = tuple[float, ...]  # network coordinates, ms
Version = tuple[int, int]  # of the coordinates (the number of the session) and of the Bloom filter
Chain = tuple[Address, ...]  # ancestors in a feed's tree, from the parent up to the publisher
About = tuple[int, Chain, int, float]  # feed, ancestors, last update known, ms along the tree from the publisher


class WhereAreYou(Message, frozen=True):
    """To a landmark: your coordinates; the time until the answer is the measurement (§6.1.4)."""

    number: int


class HereIAm(Message, frozen=True):
    """A landmark's coordinates, and how sure it is of them."""

    number: int
    position: Position
    error: float


class Ping(Message, frozen=True):
    """Are you there? Sent to friends and parents, once however many roles they have (§3.3, §4.1, §6.3)."""

    version: Version
    fan: bool  # whether you are a friend of mine
    feeds: tuple[int, ...]  # whose parent you are to me
    friends: tuple[Address, ...]

    def named(self) -> Iterable[Address]:
        return self.friends


class Ack(Message, frozen=True):
    """Yes. A feed that you asked about and that is missing here is one in which you are no child of mine."""

    version: Version
    fan: bool  # whether I count you among my fans
    friends: tuple[Address, ...]
    feeds: tuple[About, ...]

    def named(self) -> Iterable[Address]:
        return (*self.friends, *(node for _, chain, _, _ in self.feeds for node in chain))


class WhoAreYou(Message, frozen=True):
    """Your Bloom filter and coordinates, please (§3.4)."""


class Profile(Message, frozen=True):
    """Here they are."""

    version: Version
    bloom: bytes
    position: Position


class FriendRequest(Message, frozen=True):
    """May I be your fan? (§3.4)"""

    version: Version


class FriendReply(Message, frozen=True):
    """Yes, or no: I have enough of them. Either way, here are my friends."""

    accepted: bool
    version: Version
    friends: tuple[Address, ...]

    def named(self) -> Iterable[Address]:
        return self.friends


class Join(Message, frozen=True):
    """May I be your child? (Algorithm 2)"""

    feed: int
    position: Position
    session: int
    steps: int  # nodes asked before you
    periodic: bool = False  # a rejoin (§4.3): only a better way than I have
    length: float = 0.0  # of that way, ms along the tree
    failed: Address | None = None  # the parent that does not answer any more (ours)


class JoinDeny(Message, frozen=True):
    """I do not subscribe to this feed: my Bloom filter deceived you. Or I am no better parent than you have."""

    feed: int


class JoinForward(Message, frozen=True):
    """Ask this one."""

    feed: int
    to: Address

    def named(self) -> Iterable[Address]:
        return (self.to,)


class JoinOk(Message, frozen=True):
    """You are my child. Sent on request, or because your parent leaves and asked me to take you (§4.4)."""

    feed: int
    session: int  # of mine
    chain: Chain  # my ancestors
    publisher: Position
    last: int  # the last update that I know of
    child_session: int
    instead_of: Address | None = None  # the parent that leaves
    position: Position = ()  # mine
    length: float = 0.0  # of the way from the publisher to me

    def named(self) -> Iterable[Address]:
        return self.chain


class ChangeParent(Message, frozen=True):
    """You are no child of mine any more, or soon will not be; ask this one (Fig. 4d, §4.4)."""

    feed: int
    to: Address
    leaving: bool = False  # I serve you until you have another parent

    def named(self) -> Iterable[Address]:
        return (self.to,)


class Adopt(Message, frozen=True):
    """I leave; take this child of mine even if you have enough (§4.4)."""

    feed: int
    child: Address
    position: Position
    session: int

    def named(self) -> Iterable[Address]:
        return (self.child,)


class LeaveTree(Message, frozen=True):
    """I am no child of yours any more."""

    feed: int


class Pull(Message, frozen=True):
    """Send me the updates after this one, and those that I miss before it."""

    feed: int
    after: int
    missing: tuple[int, ...] = ()


class Update(Message, frozen=True):
    """An update, on its way down the tree or pulled."""

    carries_event: ClassVar[bool] = True

    topic: int
    sequence: int
    payload: bytes
    signature: bytes = b""  # of the publisher, over feed, sequence and payload; empty where updates are not signed
    pulled: bool = False


class Submit(Message, frozen=True):
    """From another publisher of the feed to the master: publish this (§2)."""

    feed: int
    number: int  # of the sender's submissions
    payload: bytes


class Submitted(Message, frozen=True):
    """Done."""

    feed: int
    number: int
