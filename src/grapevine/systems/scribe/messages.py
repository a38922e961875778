"""What peers of Scribe send each other."""

from __future__ import annotations

from typing import ClassVar

from grapevine.systems.contracts.peer import Message


class Subscribe(Message, frozen=True):
    """The sender wants to be a child in the topic's tree."""

    topic: int


class Accept(Message, frozen=True):
    """It is one."""

    topic: int


class Heartbeat(Message, frozen=True):
    """The sender is there, and the receiver's parent in these trees."""

    topics: tuple[int, ...]


class Ack(Message, frozen=True):
    """The answer: the child is there as well."""


class Leave(Message, frozen=True):
    """The sender is no longer the receiver's child, or parent, in the topic's tree."""

    topic: int


class Event(Message, frozen=True):
    """An event on its way down the tree."""

    carries_event: ClassVar[bool] = True

    topic: int
    sequence: int
    payload: bytes
