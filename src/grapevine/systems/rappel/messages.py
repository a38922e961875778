"""What Rappel's nodes send each other. A `feed` is a topic, an `update` one of its events.

Nobody may rely on an answer: messages get lost, arrive late, or come from a node that has started anew. Each message
says what the sender does when none comes. A message whose coordinates are none is dropped before anybody looks at it
(`RappelPeer.on_message`), and so is one that fits nothing that the receiver knows of.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import ClassVar

import msgspec

from grapevine.systems.contracts.peer import Address, Message

Position = tuple[float, ...]  # network coordinates, ms
Version = tuple[int, int]  # of a profile: the session (one position each), and how often the Bloom filter changed in it
Ancestors = tuple[Address, ...]  # in a feed's tree, from the parent up to the publisher


class ParentReport(msgspec.Struct, frozen=True, gc=False, array_like=True):
    """What a parent knows of the way from a feed's publisher to itself. Part of an `Ack`, one per feed."""

    feed: int
    ancestors: Ancestors  # of the parent
    last: int  # the highest sequence number that it knows of
    path_ms: float  # from the publisher to the parent along the tree, by coordinates


# Coordinates (§6.1.4)


class WhereAreYou(Message, frozen=True):
    """From a newcomer, or a landmark that still moves, to every landmark, once a second.

    The receiver answers with `HereIAm` if it knows its own position. The time until then is the measured distance. A
    lost question is one measurement less.
    """

    probe: int  # tells the sender's questions apart, so that each answer is timed by its own


class HereIAm(Message, frozen=True):
    """A landmark's answer to `WhereAreYou`. Whoever did not ask the sender, or not with this probe, ignores it."""

    probe: int  # that of the question
    position: Position
    error: float  # how unsure the sender is of its position, as a share of distances (Vivaldi)


# Staying in touch (§3.3, §4.1)


class Ping(Message, frozen=True):
    """From every node to its friends and parents, every `ping_s`; one message, however many roles they have (§6.3).

    The receiver answers with `Ack`, counts the sender as alive in all these roles, and takes the named nodes as
    candidates for friends. A node that does not answer within `timeout_s` has failed: the sender drops the friend and
    looks for other parents.
    """

    version: Version  # of the sender's profile
    as_fan: bool  # the sender has the receiver among its friends, and wants to stay its fan
    feeds: tuple[int, ...]  # in which the sender takes the receiver for its parent
    friends: tuple[Address, ...]  # of the sender

    def named(self) -> Iterable[Address]:
        return self.friends


class Ack(Message, frozen=True):
    """The answer to `Ping`, at once.

    The receiver asks for the profile if the version is a new one, votes for the named nodes, and pulls updates that it
    lacks. If the ping asked about a feed and there is no report of it, or the session in the version is not the one
    that it joined, then it is no child there and looks for another parent.
    """

    version: Version  # of the sender's profile
    is_fan: bool  # the sender counts the receiver among its fans; if that was asked for and is False, friendship ends
    friends: tuple[Address, ...]  # of the sender
    feeds: tuple[ParentReport, ...]  # of those asked about, in which the receiver is the sender's child

    def named(self) -> Iterable[Address]:
        return (*self.friends, *(node for report in self.feeds for node in report.ancestors))


# Friends (§3.4)


class WhoAreYou(Message, frozen=True):
    """To a candidate that is audited, a friend whose profile has a new version, or a friend of the last session (§5.3).

    The receiver answers with `Profile` if it knows its position. A candidate that has not answered by the next audit is
    forgotten.
    """


class Profile(Message, frozen=True):
    """The answer to `WhoAreYou`. An auditor decides by it whether the sender would be a better friend than it has."""

    version: Version
    bloom: bytes  # the filter of the sender's subscriptions, `bloom.BYTES` long
    position: Position


class FriendRequest(Message, frozen=True):
    """An auditor wants the receiver as a friend, which makes it the receiver's fan. Answered with `FriendReply`."""

    version: Version  # of the sender's profile


class FriendReply(Message, frozen=True):
    """The answer to `FriendRequest`. The receiver takes the sender as a friend if that still makes its friends better.

    A node refuses only while it does not know its position or has as many fans as it may have. Who was refused and
    lacks friends audits the next candidate.
    """

    accepted: bool
    version: Version  # of the sender's profile
    friends: tuple[Address, ...]  # of the sender: candidates for the receiver, whatever the answer

    def named(self) -> Iterable[Address]:
        return self.friends


# Trees (§4)


class Join(Message, frozen=True):
    """From a node that looks for a parent in a feed's tree, to one node after the other (Algorithm 2).

    The receiver answers with `JoinOk`, `JoinForward` or `JoinDeny`. If no answer comes within `timeout_s`, the sender
    asks the next contact that it knows.
    """

    feed: int
    position: Position  # of the sender
    session: int  # of the sender, which comes back as `JoinOk.child_session`
    steps: int  # how often this search was forwarded; 0: the search begins at the receiver
    periodic: bool = False  # a rejoin (§4.3): only a shorter way than `path_ms` is wanted
    path_ms: float = 0.0  # from the publisher to the sender along the tree, as it is now
    failed: Address | None = None  # the parent that no longer answers: do not send me back there (ours)


class JoinDeny(Message, frozen=True):
    """The answer to `Join` of a node that cannot help; the receiver asks its next contact.

    The sender is not in the feed's tree (its Bloom filter deceived, or it has left), or, in a periodic rejoin, it would
    be no better parent than the one there is.
    """

    feed: int


class JoinForward(Message, frozen=True):
    """The answer to `Join`: ask this node instead. It may be gone by then; the receiver's time-out covers that."""

    feed: int
    to: Address

    def named(self) -> Iterable[Address]:
        return (self.to,)


class JoinOk(Message, frozen=True):
    """The sender has taken the receiver as a child; sent in answer to `Join`, or unasked after an `Adopt`.

    The receiver makes the sender its parent, takes its leave of the old one and pulls what it missed. If it has asked
    nobody, or has started anew since, it answers with `LeaveTree`. If this message is lost, the sender drops the child
    that never pings.
    """

    feed: int
    session: int  # of the sender
    ancestors: Ancestors  # of the sender
    publisher_position: Position
    last: int  # the highest sequence number that the sender knows of
    child_session: int  # of the receiver, when it asked
    instead_of: Address | None = None  # the parent that leaves and asked the sender to take the receiver (§4.4)
    position: Position = ()  # of the sender
    path_ms: float = 0.0  # from the publisher to the sender along the tree

    def named(self) -> Iterable[Address]:
        return self.ancestors


class ChangeParent(Message, frozen=True):
    """From a parent to its child: look for another parent, beginning with the named node.

    Without `leaving` the receiver was evicted to make room and gets nothing more from the sender (Fig. 4d); with it the
    sender still passes updates on until the receiver says `LeaveTree`, or `leave_s` are over (§4.4). If the message is
    lost, the child learns from the next `Ack` that it is none.
    """

    feed: int
    to: Address
    leaving: bool = False

    def named(self) -> Iterable[Address]:
        return (self.to,)


class Adopt(Message, frozen=True):
    """From a node that leaves to its parent: take this child of mine, even if you have enough (§4.4).

    The receiver sends the child a `JoinOk`. It ignores the message if the sender is no child of its, or if it leaves
    itself; the child then notices that its parent is silent.
    """

    feed: int
    child: Address
    position: Position  # of the child
    session: int  # of the child

    def named(self) -> Iterable[Address]:
        return (self.child,)


class LeaveTree(Message, frozen=True):
    """The sender is no child of the receiver's (any more): it has another parent, leaves, or never asked.

    The receiver stops passing the feed's updates on to it. If the message is lost, updates go on for a while and are
    answered with another one; and a child that does not ping is dropped.
    """

    feed: int


class Pull(Message, frozen=True):
    """A request for updates, to a parent or, if that was in vain, to another ancestor (§4.1).

    The receiver sends those that it has in its cache, and says nothing about the others. What is still missing is asked
    for again after the next `Ack`.
    """

    feed: int
    after: int  # all updates with higher sequence numbers
    missing: tuple[int, ...] = ()  # and these, which are not higher


class Update(Message, frozen=True):
    """An update: from parents to children when it is new, or in answer to `Pull`.

    The receiver keeps it, passes it on to its children and hands it to the application; a second copy changes nothing.
    One whose signature is wrong is counted and dropped. A node that is not in the tree answers with `LeaveTree`.
    """

    carries_event: ClassVar[bool] = True

    topic: int
    sequence: int  # of the feed, from 1 on
    payload: bytes
    signature: bytes = b""  # of the publisher, over feed, sequence and payload; empty where updates are not signed
    pulled: bool = False  # in answer to `Pull`


# Several publishers (§2)


class Submit(Message, frozen=True):
    """From another publisher of a feed to its master publisher: publish this.

    Repeated every `timeout_s` until it is answered. The receiver publishes it, once however often it comes, and answers
    with `Submitted`. It is silent if it is not the feed's publisher, or does not know its position yet.
    """

    feed: int
    submission: int  # the sender's number of it, which no later session uses again
    payload: bytes


class Submitted(Message, frozen=True):
    """The answer to `Submit`: the master publisher has published this one, so the receiver stops repeating it."""

    feed: int
    submission: int  # that of `Submit`
