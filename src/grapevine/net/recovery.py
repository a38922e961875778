"""What was missed comes back: partners of a topic compare what they possess, and send each other what the other lacks.

    A ──Digest──▶ B         every `recover_every_s`, of every topic, to one partner at random
    A ◀─Holdings── B        where B's digest is another: what B possesses, stream by stream
    A ──Holdings──▶ B       if A has more of it; an answer, not to be answered so again
    A ──Want──▶ B, B ──Want──▶ A    each asks for what it lacks, one question per stream at a time
    A ◀─Kept── B, B ◀─Kept── A      events, as many as fit; the rest is asked for at once, as long as something comes

Who carries a topic for others keeps its events too, so this works across relay paths, hop by hop. Events on their way
make digests differ for a moment, so nobody asks for what was not missing a second before.

The past. Of a stream that becomes known in the middle (the first event that came has number 51), nobody here can say
whether 1 … 50 are wanted: whether they came after `since`. A publisher's clock does not count for that, but the clock
of whoever kept the events when they came. So partners are asked for what came *to them* since then, by their own
clocks: every answer tells what that clock shows, and `since` is translated by the least difference that was ever seen.
A message that was on its way for a while makes `since` earlier by as much, never later. An event that came anywhere
before `since` was published before it, and so were all before it: whoever keeps one says so (`Kept.over`). When
`_ASKED` partners, or all that there are, have no more of it, the past is settled: up to what two of them say is over,
or the only one who says anything, nothing is wanted; the rest is missing like anything else. A stream that is known is
never filtered by time: whatever of it is missing is asked for.

Earlier sessions. The difference between two clocks that is seen now need not have been there when a `since` of an
earlier session was noted: if the time of day was set back while this node was down, its clock of arrivals did not count
the pause (`steady_clock`), and theirs did. So such a `since` is never made later because a partner's clock is ahead.
Where that has always been ahead, somewhat more of the past comes than is wanted. What this does not cure: a clock that
was ahead itself, and was set right while the node was down.

What a partner says it possesses is a claim. Three rules follow:

1. A claim leads to questions to the partner that made it, and to nothing else. It is dropped with the connection, or
   once the ledger has come as far; after `patience` answers in vain it is not asked about any more.
   What was given up, because nobody had it, is asked of a partner that claims to have it, as often: whoever has it may
   have been away.
2. Only events change the ledger, and every event is checked like any other (`take`). An answer counts only if this very
   partner was asked for this very stream; others are ignored, and so cannot exhaust anybody's patience. Nor can one
   partner alone: an answer in vain counts once, until all others have answered so as well, and a stranger's never. One
   partner alone cannot hide the past of a stream from whom another tells of it, either.
3. Whatever a partner sends, what it costs is bounded: rows, gaps and events that are read of a message, claims that are
   remembered of a partner, questions of it that wait, and bytes of an answer (the constants here and in `serving`).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection
from dataclasses import dataclass
from random import Random
from typing import NamedTuple, Protocol
from weakref import WeakKeyDictionary

from grapevine.model.errors import PeerError
from grapevine.net.conduct import EXCESS
from grapevine.net.config import NodeConfig
from grapevine.net.connection import Connection
from grapevine.net.connections import Connections
from grapevine.net.ledger import FORKED, Account, Ledger, Stream, gaps
from grapevine.net.messages import Digest, Gap, Holdings, Kept, Possession, Want
from grapevine.net.stamp import SOURCE_BYTES
from grapevine.net.witness import Witness
from grapevine.systems.contracts.peer import Address

_TOPICS = 2_000  # compared at a time, and read of one digest
_TOLD = 5_000  # streams after which an answer to one digest takes up no further topic
_STREAMS = 1_000  # in one message of holdings, and claims of one partner that are remembered
_EVENTS = 500  # that are read of one answer
_WANTED = 64  # streams that one partner is asked for at a time
_GAPS = 500  # in one question
_ASKED = 3  # partners, for the past of a stream
_ROW_BYTES, _GAP_BYTES = 96, 18  # at most, beside gaps
Streams = dict[bytes, tuple[int, tuple[Gap, ...], bytes]]  # what a partner says of a topic's sources
_WAIT_S = 1.0  # what is missing for less long may be on its way


@dataclass(slots=True)
class _Claim:
    """A partner says that it has more of a stream than we do."""

    last: int
    since: float
    in_vain: int = 0  # answers that brought nothing


class _Question(NamedTuple):
    """A stream was asked for."""

    partner: Address
    at: float
    tells_the_past: bool  # the answer says what of the past is wanted, if that was open


class Interests(Protocol):
    """What recovery asks about topics (`Topics`)."""

    def carried(self) -> Collection[int]:
        """Topics that the node wants or carries."""

    def partners(self, topic_id: int) -> Collection[Address]:
        """With whom it exchanges a topic's events."""

    def since_ms(self, topic_id: int) -> int:
        """From when on it wants them, by its clock of arrivals (ms)."""


class Takes(Protocol):
    """What recovery asks of whoever takes events (`Arrivals`)."""

    witness: Witness

    def clock_ms(self) -> int:
        """What the clock of arrivals shows."""

    def take_kept(self, connection: Connection, topic: int, sequence: int, envelope: bytes) -> bool:
        """Check and keep an event that was asked for; False if it is not new."""

    def take_older(self, connection: Connection, topic: int, sequence: int, envelope: bytes) -> None:
        """Check an event that is too old to be wanted, and shows how far its stream goes."""


class Recovery:
    """The comparisons of one node."""

    def __init__(
        self,
        config: NodeConfig,
        interests: Interests,
        ledger: Ledger,
        connections: Connections,
        arrivals: Takes,
        random: Random,
    ) -> None:
        self.recovered = 0  # events that came by asking
        self._config, self._interests, self._ledger = config, interests, ledger
        self._connections, self._arrivals, self._random = connections, arrivals, random
        self.resumed: set[int] = set()  # topics that are wanted since an earlier session (`Assembly.start`)
        self._asked: dict[Stream, _Question] = {}  # streams that are being asked for
        self._claims: WeakKeyDictionary[Connection, dict[Stream, _Claim]] = WeakKeyDictionary()
        self._asked_again: WeakKeyDictionary[Connection, Counter[Stream]] = WeakKeyDictionary()  # in vain, so far
        self._in_vain: dict[Stream, set[Address]] = {}  # partners that have answered so, until all have
        self._ahead_ms: WeakKeyDictionary[Connection, int] = WeakKeyDictionary()  # our clock before theirs, at most
        # Streams with a past that is open: who has no more of it, and what it says is over.
        self._past: dict[Stream, dict[Address, int]] = {}
        self._turn: list[int] = []  # topics that are still to be compared in this turn

    def compare(self) -> None:
        """Send digests to a partner of each topic, and ask for what has been missing for a while. A chore."""
        now = self._connections.loop.time()
        self._asked = {
            key: asked for key, asked in self._asked.items() if now - asked.at < self._config.recover_every_s
        }
        by_partner: dict[Address, list[tuple[int, int]]] = {}
        if not self._turn:
            self._turn = sorted(self._interests.carried())
        for topic in self._turn[:_TOPICS]:
            if topic in self._ledger and (partners := self._connected(topic)):
                partner = self._random.choice(partners)
                by_partner.setdefault(partner, []).append((topic, self._ledger.digest(topic)))
                self._ask_missing(topic, self._random.choice(partners), now - _WAIT_S)
                self._ask_past(topic)
        del self._turn[:_TOPICS]
        for connection in list(self._claims):
            self._ask_claimed(connection, now - _WAIT_S)
        for partner, topics in by_partner.items():
            self._connections.send(partner, Digest(tuple(topics)))

    def _connected(self, topic: int) -> list[Address]:
        return [node for node in self._interests.partners(topic) if self._connections.connection(node) is not None]

    def _ask_missing(self, topic: int, partner: Address, before: float) -> None:
        for source, missing in list(self._ledger.missing(topic, before).items())[:_WANTED]:
            self._ask(partner, topic, source, missing)

    def _ask_past(self, topic: int) -> None:
        """Ask the next partner about streams that became known in the middle; if there is none, that was all."""
        for source in self._ledger.unsettled(topic)[:_WANTED]:
            if (topic, source) not in self._asked:
                self._ask_next(topic, source)

    def _ask_next(self, topic: int, source: bytes) -> None:
        answered = self._past.setdefault((topic, source), {})
        left = [partner for partner in self._connected(topic) if partner not in answered]
        if answered and (not left or len(answered) >= _ASKED):
            del self._past[topic, source]
            said = sorted(filter(None, answered.values()), reverse=True)
            self._ledger.settle(topic, source, min(said[:2], default=0), self._connections.loop.time())
        elif left:
            self._ask(self._random.choice(left), topic, source, [])

    def on_news(self, connection: Connection, topic: int, source: bytes) -> None:
        """An event was pushed. If its stream became known by it, in the middle, who brought it is asked for the rest at
        once: readers wait for that."""
        account = self._ledger.account(topic, source)
        if account is not None and not account.is_settled and not self._past.get((topic, source)):
            self._ask(connection.address, topic, source, [])

    def _ask_claimed(self, connection: Connection, before: float) -> None:
        """Whoever said that it has more of a stream is asked for it, as long as its answers bring something."""
        claims, asked = self._claims[connection], 0
        for (topic, source), claim in list(claims.items()):
            is_over = topic not in self._ledger or connection.is_closing
            if is_over or claim.last <= self._ledger.last(topic, source):
                del claims[topic, source]
            elif claim.since < before and claim.in_vain < self._config.patience and asked < _WANTED:
                missing = self._ledger.missing(topic, before).get(source, [])
                asked += self._ask(connection.address, topic, source, missing)

    def _ask(self, partner: Address, topic: int, source: bytes, missing: list[int]) -> bool:
        connection = self._connections.connection(partner)
        if (topic, source) in self._asked or connection is None:
            return False
        account = self._ledger.account(topic, source)
        after, before = (0, 0) if account is None else (account.last, 0 if account.is_settled else account.before)
        since_ms = self._since_ms(connection, topic)
        question = Want(topic, source, after, tuple(gaps(missing)[:_GAPS]), since_ms, before)
        self._asked[topic, source] = _Question(partner, self._connections.loop.time(), since_ms >= 0)
        self._connections.answer(connection, question)
        return True

    def _since_ms(self, connection: Connection, topic: int) -> int:
        """From when on a topic's events are wanted, by the partner's clock; -1 if that is not known yet."""
        since_ms, ahead_ms = self._interests.since_ms(topic), self._ahead_ms.get(connection)
        if since_ms <= 0:
            return 0  # from the beginning, whatever clocks say
        if ahead_ms is None:
            return -1
        if topic in self.resumed:
            ahead_ms = max(ahead_ms, 0)
        return max(since_ms - ahead_ms, 0)

    def _note_clock(self, connection: Connection, clock_ms: int) -> None:
        ahead_ms = self._arrivals.clock_ms() - clock_ms
        self._ahead_ms[connection] = min(ahead_ms, self._ahead_ms.get(connection, ahead_ms))

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
            self._connections.answer(connection, Holdings(tuple(part), about, answer, self._arrivals.clock_ms()))

    def on_holdings(self, connection: Connection, message: Holdings) -> None:
        """A partner says what it possesses: note what we lack, and tell it what we have if it lacks something."""
        ledger, now = self._ledger, self._connections.loop.time()
        self._note_clock(connection, message.clock_ms)
        theirs: dict[int, Streams] = {topic: {} for topic in message.topics[:_TOPICS]}
        for topic, source, last, missing, content in message.possessed[:_STREAMS]:
            if topic in ledger and _is_stream(source, last):
                theirs.setdefault(topic, {})[source] = last, missing, content
                if last > ledger.last(topic, source):
                    self._claim(connection, (topic, source), last, now)
        for topic, streams in theirs.items():
            if topic in ledger:
                self._ask_again(connection, topic, streams, now - _WAIT_S)
                self._ask_missing(topic, connection.address, now - _WAIT_S)
                self._compare_content(connection, topic, streams)
        if not message.answer:
            self._tell(connection, [t for t, streams in theirs.items() if self._has_more(t, streams)], answer=True)

    def _compare_content(self, connection: Connection, topic: int, theirs: Streams) -> None:
        """Streams that are as long there as here, but end otherwise: ask for their end, or send the evidence."""
        for source, (last, missing, content) in theirs.items():
            account = self._ledger.account(topic, source)
            if account is None or content == account.content:
                continue
            if account.is_forked:
                self._arrivals.witness.tell(connection, topic, source)
            elif last == account.last and account.head and content not in (b"", FORKED) and not _lacks(missing, last):
                self._ask(connection.address, topic, source, [last])

    def _ask_again(self, connection: Connection, topic: int, theirs: Streams, before: float) -> None:
        """What was given up is asked of a partner that says it has it, until `patience` answers were in vain."""
        times = self._asked_again.setdefault(connection, Counter())
        for source, numbers in list(self._ledger.abandoned(topic).items())[:_WANTED]:
            last, missing, _ = theirs.get(source, (0, (), b""))
            if times[topic, source] >= self._config.patience:
                continue
            claimed = [n for n in numbers[:_GAPS] if n <= last and not _lacks(missing, n)]
            ours = self._ledger.missing(topic, before).get(source, [])
            if claimed and self._ask(connection.address, topic, source, sorted({*claimed, *ours})):
                times[topic, source] += 1
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

    def _has_more(self, topic: int, theirs: Streams) -> bool:
        """Whether the partner should hear what we possess: we have more, or it has evidence that we have not."""
        for _, source, last, _, content in self._ledger.possessed(topic):
            their_last, missing, their_content = theirs.get(source, (0, (), b""))
            if last > their_last or missing or (their_content == FORKED) != (content == FORKED):
                return True
        return False

    def on_kept(self, connection: Connection, message: Kept) -> None:
        """An answer came: take its events, and ask on if that helped; otherwise what it lacks was asked for in vain."""
        topic, source = key = message.topic, message.source
        question, ledger, now = self._asked.get(key), self._ledger, self._connections.loop.time()
        if question is None or question.partner != connection.address or topic not in ledger:
            return  # nobody asked this one
        del self._asked[key]
        self._note_clock(connection, message.clock_ms)
        asked, reach = ledger.missing(topic, now).get(source, []), _reach(ledger.account(topic, source))
        self._take(connection, message)
        account = ledger.account(topic, source)
        left = ledger.missing(topic, now).get(source, [])
        claim = self._claims.get(connection, {}).get(key)
        is_open = account is not None and not account.is_settled
        if _reach(account) != reach or len(left) < len(asked) or (is_open and not question.tells_the_past):
            still = ledger.missing(topic, now - _WAIT_S).get(source, [])
            if still or is_open or (claim is not None and claim.last > ledger.last(*key)):
                self._ask(connection.address, *key, still)
            return
        came = {sequence for sequence, _ in message.events}
        if self._counts(key, connection.address):
            ledger.not_found(*key, [n for n in asked[:_EVENTS] if n not in came], self._config.patience)
        if claim is not None:
            claim.in_vain += 1
        if is_open:
            is_partner = connection.address in self._connected(topic)
            self._past.setdefault(key, {})[connection.address] = message.over if is_partner else 0
            self._ask_next(topic, source)

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

    def _take(self, connection: Connection, message: Kept) -> None:
        events, older = message.events[:_EVENTS], min(max(message.older, 0), 1)
        for sequence, envelope in events[:older]:
            self._arrivals.take_older(connection, message.topic, sequence, envelope)
        for sequence, envelope in events[older:]:
            if self._arrivals.take_kept(connection, message.topic, sequence, envelope):
                self.recovered += 1
                self._asked_again.get(connection, Counter()).pop((message.topic, message.source), None)


def _is_stream(source: bytes, last: int) -> bool:
    return len(source) == SOURCE_BYTES and 0 < last < 2**63


def _reach(account: Account | None) -> tuple[int, int]:
    """From where to where a stream is known."""
    return (0, 0) if account is None else (account.before, account.last)


def _lacks(missing: tuple[Gap, ...], number: int) -> bool:
    return any(first <= number <= last for first, last in missing[:_GAPS])


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
