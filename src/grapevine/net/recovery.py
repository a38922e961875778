"""What was missed comes back: partners of a topic compare what they hold, and send each other what the other lacks.

Now and then a node sends a partner a digest of every topic that they have in common. Where digests differ, the partner
answers with what it holds; each then asks for what it lacks. Events on their way make digests differ for a moment, so
nobody asks for what was not missing a second before. Who carries a topic for others keeps its events too, so this
works across relay paths, hop by hop.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Collection, Iterable
from random import Random
from typing import Protocol

from grapevine.model.errors import GrapevineError, PeerError
from grapevine.model.identity import ID_BYTES, PeerId
from grapevine.net.conduct import GARBAGE
from grapevine.net.config import NodeConfig
from grapevine.net.connection import Connection
from grapevine.net.envelope import envelope_of, published_ms
from grapevine.net.event_file import StoredEvent
from grapevine.net.ledger import Ledger, gaps
from grapevine.net.links import Links
from grapevine.net.messages import Digest, Gap, Holdings, Kept, Want
from grapevine.net.store import Store
from grapevine.systems.peer import Address

_TOPICS = 2_000  # compared at a time, and in one digest
_STREAMS = 1_000  # in one message of holdings
_EVENTS = 500  # in one answer
_ANSWER_BYTES = 256 << 10
_WANTED = 64  # streams that are asked for in one turn of a topic
_GAPS = 500  # in one question
_CLOCKS_DIFFER_MS = 60_000  # a publisher's clock may be behind the subscriber's
_WAIT_S = 1.0  # what is missing for less long may be on its way


class Holder(Protocol):
    """What recovery asks of the node."""

    def carried(self) -> Collection[int]:
        """Topics that it wants or carries."""

    def partners(self, topic: int) -> Collection[Address]:
        """With whom it exchanges them."""

    def since_ms(self, topic: int) -> int:
        """From when on it wants them."""


class Recovery:
    """The comparisons of one node."""

    def __init__(
        self,
        config: NodeConfig,
        holder: Holder,
        ledger: Ledger,
        store: Store,
        links: Links,
        take: Callable[[Connection, int, int, bytes], bool],
        random: Random,
    ) -> None:
        self.recovered = 0  # events that came so
        self._config, self._holder, self._ledger, self._store, self._links = config, holder, ledger, store, links
        self._take, self._random = take, random
        self._asked: dict[tuple[int, bytes], float] = {}  # streams that are being asked for
        self._turn: list[int] = []  # topics that are still to be compared in this turn
        self._tasks: set[asyncio.Task[None]] = set()

    def compare(self) -> None:
        """Send digests to a partner of each topic, and ask for what has been missing for a while."""
        now = self._links.loop.time()
        self._asked = {key: when for key, when in self._asked.items() if now - when < self._config.recover_every_s}
        by_partner: dict[Address, list[tuple[int, int]]] = {}
        if not self._turn:
            self._turn = sorted(self._holder.carried())
        for topic in self._turn[:_TOPICS]:
            if topic in self._ledger and (partners := self._connected(topic)):
                partner = self._random.choice(partners)
                by_partner.setdefault(partner, []).append((topic, self._ledger.digest(topic)))
                self._ask_missing(topic, self._random.choice(partners), now - _WAIT_S)
        del self._turn[:_TOPICS]
        for partner, topics in by_partner.items():
            self._links.send(partner, Digest(tuple(topics)))

    def _connected(self, topic: int) -> list[Address]:
        return [node for node in self._holder.partners(topic) if self._links.connection(node) is not None]

    def _ask_missing(self, topic: int, partner: Address, before: float) -> None:
        for publisher, missing in list(self._ledger.missing(topic, before).items())[:_WANTED]:
            self._ask(partner, topic, publisher, missing)

    def _ask(self, partner: Address, topic: int, publisher: bytes, missing: list[int]) -> None:
        if (topic, publisher) not in self._asked:
            self._asked[topic, publisher] = self._links.loop.time()
            after, since_ms = self._ledger.last(topic, publisher), self._holder.since_ms(topic)
            wanted = tuple(gaps(missing)[:_GAPS])
            self._links.send(partner, Want(topic, publisher, after, wanted, since_ms))

    # What partners say

    def on_digest(self, connection: Connection, message: Digest) -> None:
        """Tell what we hold, where that is something else."""
        ledger = self._ledger
        shared = [(topic, digest) for topic, digest in message.topics[:_TOPICS] if topic in ledger]
        self._tell(connection, [topic for topic, digest in shared if ledger.digest(topic) != digest], answer=False)

    def _tell(self, connection: Connection, topics: list[int], *, answer: bool) -> None:
        held = [row for topic in topics for row in self._ledger.held(topic)]
        for at in range(0, max(len(held), 1) if topics else 0, _STREAMS):
            about = tuple(topics) if len(held) <= _STREAMS else ()
            self._links.answer(connection, Holdings(tuple(held[at : at + _STREAMS]), about, answer))

    def on_holdings(self, connection: Connection, message: Holdings) -> None:
        """Note what we lack; tell the partner if it lacks something."""
        ledger, now = self._ledger, self._links.loop.time()
        theirs: dict[int, dict[bytes, tuple[int, tuple[Gap, ...]]]] = {topic: {} for topic in message.topics[:_TOPICS]}
        for topic, publisher, last, missing in message.held[:_STREAMS]:
            if topic in ledger and _is_stream(publisher, last):
                theirs.setdefault(topic, {})[publisher] = last, missing
                ledger.expect(topic, publisher, last, now)
        for topic in theirs:
            if topic in ledger:
                self._ask_missing(topic, connection.address, now - _WAIT_S)
        if not message.answer:
            self._tell(connection, [t for t, streams in theirs.items() if self._has_more(t, streams)], answer=True)

    def _has_more(self, topic: int, theirs: dict[bytes, tuple[int, tuple[Gap, ...]]]) -> bool:
        for _, publisher, last, _ in self._ledger.held(topic):
            told, missing = theirs.get(publisher, (0, ()))
            if last > told or missing:
                return True
        return False

    def on_want(self, connection: Connection, message: Want) -> None:
        """Send the events, one answer at a time to each partner."""
        if len(message.publisher) != ID_BYTES or not 0 <= message.after < 2**63:
            self._links.blame(connection, "garbage", GARBAGE, PeerError("it wants events of nobody"))
        elif not connection.serving:
            connection.serving = True
            task = self._links.loop.create_task(self._serve(connection, message))
            self._tasks.add(task)
            task.add_done_callback(self._tasks.discard)

    async def _serve(self, connection: Connection, wanted: Want) -> None:
        try:
            publisher = PeerId(wanted.publisher)
            missing = [n for first, last in wanted.missing[:_GAPS] for n in _numbers(first, last)][:_EVENTS]
            found = await self._store.find(publisher, wanted.topic, missing)
            found += await self._store.since(publisher, wanted.topic, wanted.after, _EVENTS - len(found))
            since_ms = wanted.since_ms - _CLOCKS_DIFFER_MS
            recent = sorted((e for e in found if published_ms(e) >= since_ms), key=lambda event: event.sequence)
            floor = max((e.sequence for e in found if published_ms(e) < since_ms), default=0)
            self._send_kept(connection, wanted, floor, recent)
        except GrapevineError:
            return  # the node is closing, or its disk is full: others will be asked
        finally:
            connection.serving = False

    def _send_kept(self, connection: Connection, wanted: Want, floor: int, events: list[StoredEvent]) -> None:
        answer: list[tuple[int, bytes]] = []
        size = 0
        for event in events:
            envelope = envelope_of(event)
            answer.append((event.sequence, envelope))
            size += len(envelope)
            if size > _ANSWER_BYTES:
                break  # the rest is asked for again
        self._links.answer(connection, Kept(wanted.topic, wanted.publisher, floor, tuple(answer)))

    def on_kept(self, connection: Connection, message: Kept) -> None:
        """Events that we asked for; those that were not there either were asked for once more."""
        key = message.topic, message.publisher
        if self._asked.pop(key, None) is None or message.topic not in self._ledger:
            return  # nobody asked
        ledger, now = self._ledger, self._links.loop.time()
        asked = ledger.missing(message.topic, now).get(message.publisher, [])
        for sequence, envelope in message.events[:_EVENTS]:
            if self._take(connection, message.topic, sequence, envelope):
                self.recovered += 1
        if message.floor > 0:
            ledger.nothing_below(*key, min(message.floor, ledger.last(*key)), lost=False)
        if message.events:
            still = ledger.missing(message.topic, now - _WAIT_S).get(message.publisher, [])
            if still and len(message.events) > 1:
                self._ask(connection.address, *key, still)
        else:
            ledger.not_found(*key, asked[:_EVENTS], self._config.patience)

    async def close(self) -> None:
        """End what is under way."""
        for task in list(self._tasks):
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)


def _is_stream(publisher: bytes, last: int) -> bool:
    return len(publisher) == ID_BYTES and 0 < last < 2**63


def _numbers(first: int, last: int) -> Iterable[int]:
    return range(max(first, 1), min(last, first + _EVENTS) + 1)
