"""What peers of Scribe send each other.

All state is soft, so a lost message is made good by a later one: a subscription is asked for again when no answer
comes, and neighbours from which nothing comes are forgotten. Any message shows that its sender is there.
"""

from __future__ import annotations

from typing import ClassVar

from grapevine.systems.contracts.peer import Message


class Subscribe(Message, frozen=True):
    """From a node that wants a parent in a topic's tree, to the next node on the route to the topic's root.

    The receiver takes the sender as a child, whoever it is, and answers with `Accept`; if it was not in the tree itself
    it sends a `Subscribe` of its own up the route. A sender that has no answer after `timeout_s` tries another route.
    """

    topic: int


class Accept(Message, frozen=True):
    """The answer to `Subscribe`: the receiver is a child in the topic's tree, so the sender is its parent.

    A receiver that has asked somebody else in the meantime answers with `Leave`.
    """

    topic: int


class Heartbeat(Message, frozen=True):
    """From a parent to each of its children, every `heartbeat_s`, one for all trees in which they are its children.

    The receiver answers with `Ack`. In trees in which it has another parent it answers with `Leave` as well; where it
    misses a tree in the list, it subscribes again, since the sender has forgotten it. A child that gets none for
    `heartbeat_s + timeout_s` looks for another parent.
    """

    topics: tuple[int, ...]  # in which the receiver is the sender's child


class Ack(Message, frozen=True):
    """The answer to `Heartbeat`: the child is there as well. A parent forgets a child from which nothing comes."""


class Leave(Message, frozen=True):
    """The sender is no longer the receiver's child, or parent, in the topic's tree; nothing is answered.

    A receiver that loses a parent looks for another; one that has no child left and does not subscribe itself leaves
    the tree, too.
    """

    topic: int


class Event(Message, frozen=True):
    """An event, from a parent to a child.

    The receiver delivers it if it subscribes, and passes it on to its children; a second copy changes nothing. From
    somebody who is not its parent it is taken as well, and answered with `Leave`. What a link loses is lost below it.
    """

    carries_event: ClassVar[bool] = True

    topic: int
    sequence: int  # the publisher's number of it, from 1 on
    payload: bytes
