"""What Vitis' nodes say to each other."""

from __future__ import annotations

import math
from collections.abc import Iterable
from typing import ClassVar

import msgspec

from grapevine.model.ids import RING_SIZE
from grapevine.systems.peer import Address, Message

MOST_VERSIONS = 1 << 62  # a profile changes less often
MOST_HOPS = 1_000  # far beyond any reach of gateways


class Descriptor(msgspec.Struct, frozen=True, gc=False, array_like=True):
    """What is known of a node: its profile, and how long ago somebody heard of it."""

    node: Address
    ring_id: int
    version: int  # of its topics
    topics: tuple[int, ...]
    up_s: float  # how long it had been there
    age_s: float = 0.0

    def is_sound(self) -> bool:
        """Whether the numbers can be what they stand for; strangers may send anything."""
        seconds = math.isfinite(self.up_s) and math.isfinite(self.age_s) and self.up_s >= 0 and self.age_s >= 0
        return seconds and self.node >= 0 and 0 <= self.ring_id < RING_SIZE and 0 <= self.version < MOST_VERSIONS


class Proposal(msgspec.Struct, frozen=True, gc=False, array_like=True):
    """Whom a member proposes as the gateway of a topic (Algorithm 5)."""

    topic: int
    gateway: Address
    gateway_id: int
    parent: Address
    hops: int

    def is_sound(self) -> bool:
        """The same."""
        return min(self.gateway, self.parent) >= 0 and 0 <= self.gateway_id < RING_SIZE and 0 <= self.hops < MOST_HOPS


class Sample(Message, frozen=True):
    """Newscast: my cache, and myself."""

    known: tuple[Descriptor, ...]
    answer: bool

    def named(self) -> Iterable[Address]:
        return [told.node for told in self.known]


class Exchange(Message, frozen=True):
    """T-Man: my table, samples and ring backups, and myself (Algorithms 2 and 3)."""

    known: tuple[Descriptor, ...]
    answer: bool

    def named(self) -> Iterable[Address]:
        return [told.node for told in self.known]


class Heartbeat(Message, frozen=True):
    """I am there (Algorithm 6), and this is what I propose for the topics that we share."""

    version: int
    link: bool  # you are in my table
    proposals: tuple[Proposal, ...]


class WhoAreYou(Message, frozen=True):
    """Your profile, please: mine of you is old."""


class Profile(Message, frozen=True):
    """Here it is."""

    me: Descriptor


class Relay(Message, frozen=True):
    """Carry this topic to me: I am a gateway, or on the way from one to the rendezvous (Algorithm 5, line 22)."""

    topic: int


class Notify(Message, frozen=True):
    """An event."""

    carries_event: ClassVar[bool] = True

    topic: int
    sequence: int
    publisher: Address
    payload: bytes
    lookup: bool = False  # on its way from somebody who neither wants nor carries the topic


class Goodbye(Message, frozen=True):
    """I leave."""
