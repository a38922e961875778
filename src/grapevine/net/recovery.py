"""What was missed comes back: partners of a topic compare what they possess, and send each other what the other lacks.

    A ──Digest──▶ B         every `recover_every_s`, of every topic, to one partner at random
    A ◀─Holdings── B        where B's digest is another: what B possesses, stream by stream
    A ──Holdings──▶ B       if A has more of it; an answer, not to be answered so again
    A ──Want──▶ B, B ──Want──▶ A    each asks for what it lacks, one question per stream at a time
    A ◀─Kept── B, B ◀─Kept── A      events, as many as fit; the rest is asked for at once, as long as something comes

Who carries a topic for others keeps its events too, so this works across relay paths, hop by hop. Events on their way
make digests differ for a moment, so nobody asks for what was not missing a second before.

What a partner says it possesses is a claim. Three rules follow:

1. A claim leads to questions to the partner that made it, and to nothing else. It is dropped with the connection, or
   once the ledger has come as far; after `patience` answers in vain it is not asked about any more.
   What was given up, because nobody had it, is asked of a partner that claims to have it, as often: whoever has it may
   have been away.
2. Only events change the ledger, and every event is checked like any other (`take`). An answer counts only if this very
   partner was asked for this very stream; others are ignored, and so cannot exhaust anybody's patience. Nor can one
   partner alone: an answer in vain counts once, until all others have answered so as well, and a stranger's never.
3. Whatever a partner sends, what it costs is bounded: rows, gaps and events that are read of a message, claims that are
   remembered of a partner, questions of it that wait, and bytes of an answer (the constants below).
"""

from __future__ import annotations

import asyncio
from collections import Counter, deque
from collections.abc import Callable, Collection, Iterable
from dataclasses import dataclass
from random import Random
from typing import Protocol
from weakref import WeakKeyDictionary

from grapevine.model.errors import GrapevineError, PeerError
from grapevine.model.identity import ID_BYTES, PeerId
from grapevine.net.conduct import EXCESS, GARBAGE
from grapevine.net.config import NodeConfig
from grapevine.net.connection import Connection
from grapevine.net.connections import Connections
from grapevine.net.envelope import envelope_of, published_ms
from grapevine.net.event_file import StoredEvent
from grapevine.net.ledger import Ledger, Stream, gaps
from grapevine.net.messages import Digest, Gap, Holdings, Kept, Possession, Want
from grapevine.net.store import Store
from grapevine.systems.contracts.peer import Address

_TOPICS = 2_000  # compared at a time, and read of one digest
_TOLD = 5_000  # streams after which an answer to one digest takes up no further topic
_STREAMS = 1_000  # in one message of holdings, and claims of one partner that are remembered
_EVENTS = 500  # in one answer
_ANSWER_BYTES = 256 << 10
_WANTED = 64  # streams that one partner is asked for, and may ask for, at a time
_GAPS = 500  # in one question
CLOCKS_DIFFER_MS = 60_000  # a publisher's clock may be behind the subscriber's
_ROW_BYTES, _GAP_BYTES, _EVENT_BYTES = 64, 18, 16  # at most, beside gaps and envelopes
_WAIT_S = 1.0  # what is missing for less long may be on its way


@dataclass(slots=True)
class _Claim:
    """A partner says that it has more of a stream than we do."""

    last: int
    since: float
    in_vain: int = 0  # answers that brought nothing


class Interests(Protocol):
    """What recovery asks about topics (`Topics`)."""

    def carried(self) -> Collection[int]:
        """Topics that the node wants or carries."""

    def partners(self, topic_id: int) -> Collection[Address]:
        """With whom it exchanges a topic's events."""

    def since_ms(self, topic_id: int) -> int:
        """From when on it wants them, in ms since the epoch."""


class Recovery:
    """The comparisons of one node. `take` checks and keeps an event that was asked for (`Arrivals.take_kept`)."""

    def __init__(
        self,
        config: NodeConfig,
        interests: Interests,
        ledger: Ledger,
        store: Store,
        connections: Connections,
        take: Callable[[Connection, int, int, bytes], bool],
        random: Random,
    ) -> None:
        self.recovered = 0  # events that came by asking
        self._config, self._interests, self._ledger, self._store = config, interests, ledger, store
        self._connections, self._take, self._random = connections, take, random
        self._asked: dict[Stream, tuple[Address, float]] = {}  # streams that are being asked for: whom, and since when
        self._claims: WeakKeyDictionary[Connection, dict[Stream, _Claim]] = WeakKeyDictionary()
        self._asked_again: WeakKeyDictionary[Connection, Counter[Stream]] = WeakKeyDictionary()  # in vain, so far
        self._wanted: WeakKeyDictionary[Connection, deque[Want]] = WeakKeyDictionary()  # of whom is being served
        self._in_vain: dict[Stream, set[Address]] = {}  # partners that have answered so, until all have
        self._turn: list[int] = []  # topics that are still to be compared in this turn
        self._tasks: set[asyncio.Task[None]] = set()

    def compare(self) -> None:
        """Send digests to a partner of each topic, and ask for what has been missing for a while. A chore."""
        now = self._connections.loop.time()
        self._asked = {
            key: asked for key, asked in self._asked.items() if now - asked[1] < self._config.recover_every_s
        }
        by_partner: dict[Address, list[tuple[int, int]]] = {}
        if not self._turn:
            self._turn = sorted(self._interests.carried())
        for topic in self._turn[:_TOPICS]:
            if topic in self._ledger and (partners := self._connected(topic)):
                partner = self._random.choice(partners)
                by_partner.setdefault(partner, []).append((topic, self._ledger.digest(topic)))
                self._ask_missing(topic, self._random.choice(partners), now - _WAIT_S)
        del self._turn[:_TOPICS]
        for connection in list(self._claims):
            self._ask_claimed(connection, now - _WAIT_S)
        for partner, topics in by_partner.items():
            self._connections.send(partner, Digest(tuple(topics)))

    def _connected(self, topic: int) -> list[Address]:
        return [node for node in self._interests.partners(topic) if self._connections.connection(node) is not None]

    def _ask_missing(self, topic: int, partner: Address, before: float) -> None:
        for publisher, missing in list(self._ledger.missing(topic, before).items())[:_WANTED]:
            self._ask(partner, topic, publisher, missing)

    def _ask_claimed(self, connection: Connection, before: float) -> None:
        """Whoever said that it has more of a stream is asked for it, as long as its answers bring something."""
        claims, asked = self._claims[connection], 0
        for (topic, publisher), claim in list(claims.items()):
            is_over = topic not in self._ledger or connection.is_closing
            if is_over or claim.last <= self._ledger.last(topic, publisher):
                del claims[topic, publisher]
            elif claim.since < before and claim.in_vain < self._config.patience and asked < _WANTED:
                missing = self._ledger.missing(topic, before).get(publisher, [])
                asked += self._ask(connection.address, topic, publisher, missing)

    def _ask(self, partner: Address, topic: int, publisher: bytes, missing: list[int]) -> bool:
        if (topic, publisher) in self._asked:
            return False
        self._asked[topic, publisher] = partner, self._connections.loop.time()
        after, since_ms = self._ledger.last(topic, publisher), self._interests.since_ms(topic)
        self._connections.send(partner, Want(topic, publisher, after, tuple(gaps(missing)[:_GAPS]), since_ms))
        return True

    # What partners say

    def on_digest(self, connection: Connection, message: Digest) -> None:
        """A partner compares: tell it what we possess of topics in which we differ. Who names one twice is blamed."""
        ledger, named = self._ledger, dict(message.topics[:_TOPICS])
        if len(named) < len(message.topics[:_TOPICS]):
            self._connections.blame(connection, "excess", EXCESS, PeerError("its Digest names a topic several times"))
            return
        shared = [(topic, digest) for topic, digest in named.items() if topic in ledger]
        self._tell(connection, [topic for topic, digest in shared if ledger.digest(topic) != digest], answer=False)

    def _tell(self, connection: Connection, topics: list[int], *, answer: bool) -> None:
        rows: list[Possession] = []
        for at, topic in enumerate(topics):
            if len(rows) > _TOLD:  # others differ still when the partner compares again
                del topics[at:]
                break
            rows += self._ledger.possessed(topic)
        parts = _parts(rows, self._config.frame_bytes // 2)
        for part in parts if topics else ():
            about = tuple(topics) if len(parts) == 1 else ()
            self._connections.answer(connection, Holdings(tuple(part), about, answer))

    def on_holdings(self, connection: Connection, message: Holdings) -> None:
        """A partner says what it possesses: note what we lack, and tell it what we have if it lacks something."""
        ledger, now = self._ledger, self._connections.loop.time()
        theirs: dict[int, dict[bytes, tuple[int, tuple[Gap, ...]]]] = {topic: {} for topic in message.topics[:_TOPICS]}
        for topic, publisher, last, missing in message.possessed[:_STREAMS]:
            if topic in ledger and _is_stream(publisher, last):
                theirs.setdefault(topic, {})[publisher] = last, missing
                if last > ledger.last(topic, publisher):
                    self._claim(connection, (topic, publisher), last, now)
        for topic, streams in theirs.items():
            if topic in ledger:
                self._ask_again(connection, topic, streams, now - _WAIT_S)
                self._ask_missing(topic, connection.address, now - _WAIT_S)
        if not message.answer:
            self._tell(connection, [t for t, streams in theirs.items() if self._has_more(t, streams)], answer=True)

    def _ask_again(
        self, connection: Connection, topic: int, theirs: dict[bytes, tuple[int, tuple[Gap, ...]]], before: float
    ) -> None:
        """What was given up is asked of a partner that says it has it, until `patience` answers were in vain."""
        times = self._asked_again.setdefault(connection, Counter())
        for publisher, numbers in list(self._ledger.abandoned(topic).items())[:_WANTED]:
            last, missing = theirs.get(publisher, (0, ()))
            if times[topic, publisher] >= self._config.patience:
                continue
            gaps_there = missing[:_GAPS]
            claimed = [
                n for n in numbers[:_GAPS] if n <= last and not any(first <= n <= end for first, end in gaps_there)
            ]
            ours = self._ledger.missing(topic, before).get(publisher, [])
            if claimed and self._ask(connection.address, topic, publisher, sorted({*claimed, *ours})):
                times[topic, publisher] += 1
        if len(times) > _STREAMS:
            del times[next(iter(times))]

    def _claim(self, connection: Connection, stream: Stream, last: int, now: float) -> None:
        claims = self._claims.setdefault(connection, {})
        known = claims.get(stream)
        if known is None:
            claims[stream] = _Claim(last, now)
        elif last > known.last:
            known.last, known.in_vain = last, 0
        if len(claims) > _STREAMS:
            del claims[next(iter(claims))]

    def _has_more(self, topic: int, theirs: dict[bytes, tuple[int, tuple[Gap, ...]]]) -> bool:
        for _, publisher, last, _ in self._ledger.possessed(topic):
            their_last, missing = theirs.get(publisher, (0, ()))
            if last > their_last or missing:
                return True
        return False

    def on_want(self, connection: Connection, message: Want) -> None:
        """A partner asks for events: send them, one answer at a time to each. Who asks for nobody's is blamed."""
        if len(message.publisher) != ID_BYTES or not 0 <= message.after < 2**63:
            self._connections.blame(connection, "garbage", GARBAGE, PeerError("it wants events of nobody"))
        elif connection in self._wanted:
            if len(self._wanted[connection]) < _WANTED:
                self._wanted[connection].append(message)
        else:
            self._wanted[connection] = deque([message])
            task = self._connections.loop.create_task(self._serve(connection))
            self._tasks.add(task)
            task.add_done_callback(self._tasks.discard)

    async def _serve(self, connection: Connection) -> None:
        wanted = self._wanted[connection]
        try:
            while wanted and not connection.is_closing:
                await self._serve_one(connection, wanted.popleft())
        except GrapevineError:
            return  # the node is closing, or its disk is full: others will be asked
        finally:
            del self._wanted[connection]

    async def _serve_one(self, connection: Connection, wanted: Want) -> None:
        publisher, since_ms = PeerId(wanted.publisher), wanted.since_ms - CLOCKS_DIFFER_MS
        missing = [n for first, last in wanted.missing[:_GAPS] for n in _numbers(first, last)][:_EVENTS]
        highest = max((last for _, last in wanted.missing[:_GAPS]), default=0)
        proof = [e for e in await self._store.find(publisher, wanted.topic, [highest]) if published_ms(e) < since_ms]
        found = [] if proof else await self._store.find(publisher, wanted.topic, missing)
        found += await self._store.since(publisher, wanted.topic, wanted.after, _EVENTS - len(found))
        old = [event for event in proof + found if published_ms(event) < since_ms]
        recent = sorted((e for e in found if published_ms(e) >= since_ms), key=lambda event: event.sequence)
        newest_of_old = [max(old, key=lambda event: event.sequence)] if old else []
        self._send_kept(connection, wanted, newest_of_old + recent)

    def _send_kept(self, connection: Connection, wanted: Want, events: list[StoredEvent]) -> None:
        answer: list[tuple[int, bytes]] = []
        room = min(_ANSWER_BYTES, self._config.frame_bytes // 2)
        for event in events:
            envelope = envelope_of(event)
            room -= len(envelope) + _EVENT_BYTES
            if answer and room < 0:
                break  # the rest is asked for again
            answer.append((event.sequence, envelope))
        self._connections.answer(connection, Kept(wanted.topic, wanted.publisher, tuple(answer)))

    def on_kept(self, connection: Connection, message: Kept) -> None:
        """An answer came: take its events, and ask on if that helped; otherwise what it lacks was asked for in vain."""
        key = message.topic, message.publisher
        if self._asked.get(key, (None, 0.0))[0] != connection.address or message.topic not in self._ledger:
            return  # nobody asked this one
        del self._asked[key]
        ledger, now = self._ledger, self._connections.loop.time()
        asked, last = ledger.missing(message.topic, now).get(message.publisher, []), ledger.last(*key)
        for sequence, envelope in message.events[:_EVENTS]:
            if self._take(connection, message.topic, sequence, envelope):
                self.recovered += 1
                self._asked_again.get(connection, Counter()).pop(key, None)
        left = ledger.missing(message.topic, now).get(message.publisher, [])
        claim = self._claims.get(connection, {}).get(key)
        if ledger.last(*key) > last or len(left) < len(asked):
            still = ledger.missing(message.topic, now - _WAIT_S).get(message.publisher, [])
            if still or (claim is not None and claim.last > ledger.last(*key)):
                self._ask(connection.address, *key, still)
        else:
            came = {sequence for sequence, _ in message.events}
            if self._counts(key, connection.address):
                ledger.not_found(*key, [n for n in asked[:_EVENTS] if n not in came], self._config.patience)
            if claim is not None:
                claim.in_vain += 1

    def _counts(self, key: Stream, partner: Address) -> bool:
        """Whether an answer in vain counts towards giving up: of partners alone, and once of each until all have
        answered. So nobody makes this node give up what another partner has."""
        partners = set(self._connected(key[0]))
        if partner not in partners:
            return False
        told = self._in_vain.pop(key, set()) & partners
        is_first = partner not in told
        told.add(partner)
        if told < partners:
            self._in_vain[key] = told
            if len(self._in_vain) > _STREAMS:
                del self._in_vain[next(iter(self._in_vain))]
        return is_first

    async def close(self) -> None:
        """Stop answering. Called when the node closes."""
        for task in list(self._tasks):
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)


def _is_stream(publisher: bytes, last: int) -> bool:
    return len(publisher) == ID_BYTES and 0 < last < 2**63


def _parts(rows: list[Possession], room: int) -> list[list[Possession]]:
    """Rows for one message each, at least one message; none with more rows, or more bytes, than a frame takes."""
    parts: list[list[Possession]] = [[]]
    left = room
    for row in rows:
        left -= _ROW_BYTES + _GAP_BYTES * len(row[3])
        if parts[-1] and (left < 0 or len(parts[-1]) == _STREAMS):
            parts.append([])
            left = room - _ROW_BYTES - _GAP_BYTES * len(row[3])
        parts[-1].append(row)
    return parts


def _numbers(first: int, last: int) -> Iterable[int]:
    return range(max(first, 1), min(last, first + _EVENTS) + 1)
