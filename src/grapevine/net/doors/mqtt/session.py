"""What the door knows of a client beyond its connection: subscriptions, what is under way, and its will."""

from __future__ import annotations

import asyncio
from time import time
from typing import TYPE_CHECKING, NamedTuple

import mqtt5
import msgspec

from grapevine.net.doors.mqtt.filters import has_wildcard, matches
from grapevine.net.doors.mqtt.message import Message
from grapevine.net.doors.mqtt.outgoing import Outgoing, Pending

if TYPE_CHECKING:
    from grapevine.net.doors.mqtt.conversation import Conversation
    from grapevine.net.doors.mqtt.feed import Feed

SETTLE_S = 30.0
CLIENT_CHARACTERS = 200  # of the longest client identifier


class Subscription(msgspec.Struct, frozen=True):
    """One filter of a session, and how its messages are to come (MQTT 5, section 3.8.3.1)."""

    filter: str
    qos: int
    no_local: bool
    as_published: bool
    wants_retained: bool
    identifier: int | None
    began: float  # when, in seconds since the epoch; one that replaces another goes on from there

    def is_past(self, message: Message, now: float) -> bool:
        """Whether a message is older than the subscription, by its publisher's clock.

        The node's own "from now on" does not say that: what was on its way when the topic was subscribed to, or on
        offer because nobody could take it, comes to the subscriber. After `SETTLE_S` no clock decides.
        """
        return message.time < self.began and now < self.began + SETTLE_S


def _resumed(kept: Subscription) -> Subscription:
    """One that was made before the node was started: what its topics retain has come to it."""
    return msgspec.structs.replace(kept, wants_retained=False)


class Kept(msgspec.Struct):
    """A session as it is kept on the disk."""

    expiry_s: float
    expires: float  # seconds since the epoch; of one whose client is connected: when it would expire from now on
    subscriptions: list[Subscription]
    pending: list[Pending]
    received: list[int]
    named: list[str]
    owned: list[str]


class Delivery(NamedTuple):
    """How a message is to be sent to one client."""

    qos: int
    retain: bool
    identifiers: tuple[int, ...]


class Session:
    """One client's session. It is over when it has waited for its client for `expiry_s`."""

    def __init__(self, client: str, expiry_s: float, kept: Kept | None = None) -> None:
        self.client, self.expiry_s = client, expiry_s
        self.is_durable = expiry_s > 0  # whether its subscriptions of QoS 1 and 2 outlive its connections
        self.subscriptions = {one.filter: _resumed(one) for one in kept.subscriptions} if kept else {}
        self.outgoing = Outgoing(kept.pending if kept else None)
        self.received = set(kept.received) if kept else set[int]()  # identifiers of QoS 2 that wait for PUBREL
        self.named = set(kept.named) if kept else set[str]()  # topics that it reads under its name in the node
        self.feeds: dict[str, Feed] = {}
        self.retained: dict[
            str, tuple[bytes, int]
        ] = {}  # source and sequence of what it was sent as retained, by topic
        self.conversation: Conversation | None = None  # with its client, while that is connected
        self.began = 0.0  # that conversation, in seconds since the epoch
        self.turn = asyncio.Lock()  # of changes of its feeds
        self.will: mqtt5.Will | None = None

    @property
    def reader_name(self) -> str:
        """The name under which it reads in the node."""
        return f"mqtt/{self.client}"

    @property
    def has_no_local(self) -> bool:
        """Whether its own messages have to be told from others."""
        return any(one.no_local for one in self.subscriptions.values())

    def kept(self, now: float, owned: set[str]) -> bytes:
        """What the disk has to know of it."""
        return msgspec.msgpack.encode(
            Kept(
                self.expiry_s,
                now + self.expiry_s,
                list(self.subscriptions.values()),
                [one for one in self.outgoing.pending() if one.key[2] > 0],
                sorted(self.received),
                sorted(self.named),
                sorted(self.named & owned),
            )
        )

    def matching(self, topic: str) -> list[Subscription]:
        """Its subscriptions that match a topic."""
        found = [one for one in self.subscriptions.values() if has_wildcard(one.filter) and matches(one.filter, topic)]
        exact = self.subscriptions.get(topic)
        return found if exact is None or has_wildcard(topic) else [exact, *found]

    def plan(self, message: Message, matched: list[Subscription]) -> Delivery | None:
        """How this client gets a message; None: it does not. One message for all subscriptions that match, at the
        highest QoS of them (MQTT-3.3.4-2)."""
        now = time()
        matched = [one for one in matched if not one.is_past(message, now)]
        if message.extras.client:
            own = message.extras.client == self.client
            matched = [one for one in matched if not (one.no_local and own)]  # MQTT-3.8.3-3
        if not matched:
            return None
        retain = message.extras.retain and any(one.as_published for one in matched)
        identifiers = tuple(one.identifier for one in matched if one.identifier is not None)
        return Delivery(max(one.qos for one in matched), retain, identifiers)
