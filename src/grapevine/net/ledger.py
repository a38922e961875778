"""What a node possesses, by topic and source: which events came, which are missing, which are over.

A *stream* is what one source, a publisher in one of its epochs (`stamp`), publishes in one topic, numbered from 1
without gaps. Its *account* says of them:

    1 … floor            over: retention has removed them, or they are older than is wanted, or nobody had them
    floor+1 … before     in a stream that became known in the middle: perhaps older than is wanted. They are neither
                         here nor missing; partners are asked which are wanted (`recovery`), then the floor rises
    … last               each is here, or missing (and asked for), or given up (asked only of who says that it has it)
    last+1 …             unknown: nobody has shown that they exist

A number is only ever shown to exist by an event, signed, of this number or a later one: what partners merely claim
changes no account. Otherwise anybody could say that a stream has come to 2^62, and whoever believes it would take the
real events for old ones. An account is opened from what the store has and merged with what came meanwhile.

Three rules hold after every call:

1. `missing` and `given_up` are disjoint, and lie above floor and `before`, and below or at `last`; `has` is true of
   everything else above them up to `last`. The floor and `last` never fall, `before` never rises.
2. Bounds: a stream has at most `gap_limit` numbers that are missing or given up, all streams together have at most 20
   times as many missing. Beyond, the floor rises over the oldest, which are counted as given up: strangers who publish
   an event with a huge number cost this node no more than that.
3. Two nodes that have the same `last`, the same event there (its fingerprint, `head`), and lack the same numbers,
   missing or given up, in every stream of a topic have the same digest, so equal digests mean that neither can help the
   other, and neither knows of an equivocation that the other does not. What was given up counts: the one who has it may
   have been away. Events name the one before, so equal last events mean equal streams (`stamp`).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from hashlib import blake2b

from grapevine.net.event_file import Possessed
from grapevine.net.messages import Gap, Possession

Stream = tuple[int, bytes]  # topic and source
FORKED = b"forked"  # in the place of a fingerprint: the stream's publisher contradicts itself
Lost = Callable[[int, bytes, int, int], None]
_MOST_GAPS = 200  # of a stream, in one message
_STREAMS_WITH_GAPS = 20  # of full length: all streams together have no more missing than these


@dataclass(slots=True)
class Account:
    """What is known of one stream. Only the ledger changes it, which counts what is missing in all of them."""

    floor: int = 0  # everything up to here is over
    last: int = 0  # the highest number that an event has shown to exist
    head: bytes = b""  # the fingerprint of that event; empty: unknown
    before: int = 0  # from the floor to here, nobody has said yet what is wanted
    is_forked: bool = False  # its publisher contradicts itself, and there is evidence
    missing: dict[int, float] = field(default_factory=dict)  # by number: since when it is known to be missing
    asked: dict[int, int] = field(default_factory=dict)  # by missing number: how many answers did not have it
    given_up: set[int] = field(default_factory=set)  # only who says that it has them is asked; they may still come
    refused: set[int] = field(default_factory=set)  # by validators: they need not come, and are not here

    def has(self, sequence: int) -> bool:
        """Whether the event needs not come: it is here, or over."""
        if sequence <= self.floor:
            return True
        return self.before < sequence <= self.last and sequence not in self.missing and sequence not in self.given_up

    @property
    def content(self) -> bytes:
        """What stands for the content of the stream in comparisons."""
        return FORKED if self.is_forked else self.head

    @property
    def is_settled(self) -> bool:
        """Whether it is known where the part that is wanted begins."""
        return self.before <= self.floor

    def lacking(self) -> list[int]:
        """Numbers that are missing or given up, ascending."""
        return sorted(self.missing.keys() | self.given_up)


class Ledger:
    """Accounts of all streams of the topics that a node wants or carries."""

    def __init__(self, gap_limit: int, on_lost: Lost = lambda *_: None) -> None:
        self.given_up = 0  # events that nobody had
        self._on_lost = on_lost  # told of topic, source, first and last of what was given up, before it is counted
        self._gap_limit = gap_limit
        self._missing = 0  # of all streams
        self._topics: dict[int, dict[bytes, Account]] = {}
        self._digests: dict[int, int] = {}

    def open(self, topic: int, possessed: Iterable[Possessed], now: float) -> None:
        """Keep accounts of a topic from now on. Called when it is first wanted, published in or carried (`topics`).

        `possessed` is what the store has. Of a stream of which retention has removed nothing, nobody knows whether what
        lies below its first event was ever wanted. An account that is open already is merged with that, so what came
        while the store was asked is not forgotten.
        """
        accounts = self._topics.setdefault(topic, {})
        for stream in possessed:
            before = 0 if stream.floor else stream.lowest - 1
            gaps = dict.fromkeys((n for n in stream.missing if n > before), now)
            floor = max(stream.floor, min(gaps, default=stream.last + 1) - 1) if stream.floor else 0
            last = max(stream.last, stream.floor)
            stored = Account(floor, last, stream.head, before, stream.is_forked, missing=gaps)
            known = accounts.get(stream.source)
            account = accounts[stream.source] = stored if known is None else _merged(known, stored)
            self._missing += len(account.missing) - (len(known.missing) if known else 0)
            if known is not None:  # what one of them began in the middle of may reach beyond the other's end
                shorter, longer = sorted((known, stored), key=lambda one: one.last)
                self._miss((topic, stream.source), account, shorter.last + 1, longer.before, now)
            self._keep_bounds((topic, stream.source), account)
        self._digests.pop(topic, None)

    def close(self, topic: int) -> None:
        """Forget the topic's accounts: this node has nothing to do with it any more. Its events stay in the store."""
        for account in self._topics.pop(topic, {}).values():
            self._missing -= len(account.missing)
        self._digests.pop(topic, None)

    def __contains__(self, topic: int) -> bool:
        return topic in self._topics

    def topics(self) -> list[int]:
        """Topics of which accounts are kept."""
        return list(self._topics)

    def has(self, topic: int, source: bytes, sequence: int) -> bool:
        """Whether an event came already, or is over; False of topics and streams without an account."""
        account = self._topics.get(topic, {}).get(source)
        return account is not None and account.has(sequence)

    def has_room(self, topic: int, source: bytes, most: int) -> bool:
        """Whether the source has an account in the topic, or may have one: keys cost nothing, accounts do."""
        accounts = self._topics.get(topic, {})
        return source in accounts or len(accounts) < most

    def note(self, topic: int, source: bytes, sequence: int, now: float, head: bytes = b"") -> bool:
        """An event came whose signature was checked, with this fingerprint; False if it needed not come.

        The topic must be open. Numbers between the last one known and this one are missing from now on; in a stream
        that nobody knew, nobody knows whether those before this one are wanted.
        """
        accounts = self._topics[topic]
        account = accounts.get(source)
        if account is None:
            account = accounts[source] = Account(before=sequence - 1, last=sequence - 1)
        if account.has(sequence):
            return False
        key = topic, source
        if sequence <= account.before:
            before, account.before = account.before, sequence - 1
            self._miss(key, account, sequence + 1, before, now)
        elif sequence > account.last:
            self._miss(key, account, account.last + 1, sequence - 1, now)
            account.last, account.head = sequence, head
        elif sequence == account.last:
            account.head = head
        self._found(account, sequence)
        self._digests.pop(topic, None)
        return True

    def show(self, topic: int, source: bytes, sequence: int, head: bytes) -> None:
        """An event that is older than is wanted shows that its stream exists, and how far. Of streams that are known
        this says nothing. The topic must be open."""
        if source not in self._topics[topic]:
            self._topics[topic][source] = Account(last=sequence, head=head, before=sequence)
            self._digests.pop(topic, None)

    def settle(self, topic: int, source: bytes, over: int, now: float) -> None:
        """Of a stream that became known in the middle, what lies up to `over` is not wanted; the rest is missing."""
        account = self._topics.get(topic, {}).get(source)
        if account is not None and not account.is_settled:
            before, account.before = account.before, 0
            self._raise_floor((topic, source), account, min(over, before), lost=False)
            self._miss((topic, source), account, over + 1, before, now)

    def fork(self, topic: int, source: bytes) -> None:
        """There is evidence that the source contradicts itself in this topic."""
        account = self._topics.get(topic, {}).get(source)
        if account is not None:
            account.is_forked = True
            self._digests.pop(topic, None)

    def refuse(self, topic: int, source: bytes, sequence: int, now: float, head: bytes = b"") -> None:
        """An event came that a validator does not want: it is neither missing nor here. The topic must be open.

        As many are remembered as a stream may have gaps; of the oldest beyond that only readers notice.
        """
        if self.note(topic, source, sequence, now, head):
            refused = self._topics[topic][source].refused
            refused.add(sequence)
            if len(refused) > self._gap_limit:
                refused.discard(min(refused))

    def give_up(self, topic: int, source: bytes, sequence: int, now: float, head: bytes = b"") -> None:
        """An event came that this node does not take, although its applications may want it: it is given up at once,
        and counted, once. The topic must be open."""
        account = self._topics[topic].get(source)
        if account is not None and sequence in account.given_up:
            return
        if self.note(topic, source, sequence, now, head):
            account = self._topics[topic][source]
            account.given_up.add(sequence)
            self._lost((topic, source), sequence, sequence, 1)
            self._keep_bounds((topic, source), account)
            self._digests.pop(topic, None)

    def lose(self, topic: int, source: bytes, sequence: int, now: float) -> None:
        """An event that came could not be kept: it is missing again."""
        account = self._topics.get(topic, {}).get(source)
        if account is None or not account.floor < sequence <= account.last or not account.has(sequence):
            return
        account.missing[sequence] = now
        self._missing += 1
        self._keep_bounds((topic, source), account)
        self._digests.pop(topic, None)

    def not_found(self, topic: int, source: bytes, sequences: Iterable[int], patience: int) -> None:
        """Somebody was asked for these and had none of them; after `patience` such answers a number is given up."""
        account = self._topics[topic].get(source)
        if account is None:
            return
        for sequence in sequences:
            if sequence in account.missing:
                account.asked[sequence] = account.asked.get(sequence, 0) + 1
                if account.asked[sequence] >= patience:
                    self._found(account, sequence)
                    account.given_up.add(sequence)
                    self._lost((topic, source), sequence, sequence, 1)
                    self._digests.pop(topic, None)

    def _lost(self, stream: Stream, first: int, last: int, count: int) -> None:
        self.given_up += count
        self._on_lost(*stream, first, last)

    def _miss(self, stream: Stream, account: Account, first: int, last: int, now: float) -> None:
        """All of these are missing, or as many of the last ones as the bounds allow; the floor rises over the rest."""
        first = max(first, account.floor + 1)
        room = _STREAMS_WITH_GAPS * self._gap_limit - self._missing
        enough = max(first, last - max(min(self._gap_limit, room), 0) + 1)
        if enough > first:
            self._lost(stream, first, enough - 1, enough - first)
            self._raise_floor(stream, account, enough - 1)
        for sequence in range(enough, last + 1):
            account.missing[sequence] = now
        self._missing += max(0, last + 1 - enough)
        self._keep_bounds(stream, account)

    def _keep_bounds(self, stream: Stream, account: Account) -> None:
        absent = len(account.missing) + len(account.given_up)
        excess = max(absent - self._gap_limit, min(self._missing - _STREAMS_WITH_GAPS * self._gap_limit, absent))
        if excess > 0:
            excess = min(excess + self._gap_limit // 10, absent)  # some more, or every event would sort
            self._raise_floor(stream, account, account.lacking()[excess - 1])

    def _raise_floor(self, stream: Stream, account: Account, floor: int, *, lost: bool = True) -> None:
        over = [sequence for sequence in account.missing if sequence <= floor]
        for sequence in over:
            self._found(account, sequence)
        account.given_up = {sequence for sequence in account.given_up if sequence > floor}
        account.refused = {sequence for sequence in account.refused if sequence > floor}
        if lost and over:
            self._lost(stream, min(over), max(over), len(over))
        account.floor = max(account.floor, floor)
        account.last = max(account.last, floor)
        self._digests.pop(stream[0], None)

    def _found(self, account: Account, sequence: int) -> None:
        """It is no longer looked for, for whatever reason."""
        if account.missing.pop(sequence, None) is not None:
            self._missing -= 1
        account.asked.pop(sequence, None)
        account.given_up.discard(sequence)

    def missing(self, topic: int, before: float) -> dict[bytes, list[int]]:
        """Numbers that have been missing since before this time, ascending, by source; only streams with any."""
        found = {}
        for source, account in self._topics.get(topic, {}).items():
            if account.missing:
                old = sorted(sequence for sequence, since in account.missing.items() if since < before)
                if old:
                    found[source] = old
        return found

    def abandoned(self, topic: int) -> dict[bytes, list[int]]:
        """Numbers that were given up, ascending, by source; only streams with any."""
        accounts = self._topics.get(topic, {})
        return {source: sorted(account.given_up) for source, account in accounts.items() if account.given_up}

    def unsettled(self, topic: int) -> list[bytes]:
        """Sources whose streams became known in the middle, and of which nobody has said what is wanted."""
        return [source for source, account in self._topics.get(topic, {}).items() if not account.is_settled]

    def is_complete(self, topic: int) -> bool:
        """Whether nothing of the topic is missing."""
        return not any(account.missing for account in self._topics.get(topic, {}).values())

    def digest(self, topic: int) -> int:
        """64 bits of a hash over what is possessed of an open topic; the same for all who possess the same."""
        found = self._digests.get(topic)
        if found is None:
            hashed = blake2b(digest_size=8)
            for source, account in sorted(self._topics[topic].items()):
                if account.last:
                    lacking = repr(account.lacking()).encode()
                    hashed.update(source + b"%d %s %s" % (account.last, lacking, account.content))
            found = self._digests[topic] = int.from_bytes(hashed.digest(), "big")
        return found

    def possessed(self, topic: int) -> list[Possession]:
        """What a `Holdings` message tells of a topic: its streams, with the first 200 gaps of each."""
        accounts = self._topics.get(topic, {})
        return [
            (topic, source, account.last, tuple(gaps(account.lacking())[:_MOST_GAPS]), account.content)
            for source, account in accounts.items()
            if account.last
        ]

    def account(self, topic: int, source: bytes) -> Account | None:
        """What is known of a stream, for readers; not to be changed. None if the topic or stream is unknown."""
        return self._topics.get(topic, {}).get(source)

    def missing_in(self, topic: int) -> int:
        """How many events of a topic are missing, of all streams."""
        return sum(len(account.missing) for account in self._topics.get(topic, {}).values())

    def last(self, topic: int, source: bytes) -> int:
        """The highest number that is known of a stream; 0 if none is."""
        account = self._topics.get(topic, {}).get(source)
        return account.last if account is not None else 0


def _merged(one: Account, other: Account) -> Account:
    """The account of a stream of which two are known, the second by the store: what one of them has is here."""
    floor, last = max(one.floor, other.floor), max(one.last, other.last)
    missing = {
        sequence: since
        for account, counterpart in ((one, other), (other, one))
        for sequence, since in account.missing.items()
        if sequence > floor and not counterpart.has(sequence)
    }
    asked = {sequence: times for sequence, times in one.asked.items() if sequence in missing}
    given_up = {sequence for sequence in one.given_up if sequence > floor and not other.has(sequence)}
    still = {n: since for n, since in missing.items() if n not in given_up}
    head = one.head if one.last >= other.last else other.head
    before, is_forked = min(one.before, other.before), one.is_forked or other.is_forked
    return Account(floor, last, head, before, is_forked, still, asked, given_up, one.refused | other.refused)


def gaps(numbers: Iterable[int]) -> list[Gap]:
    """Ascending numbers as runs from … to."""
    runs: list[Gap] = []
    for number in numbers:
        if runs and runs[-1][1] == number - 1:
            runs[-1] = runs[-1][0], number
        else:
            runs.append((number, number))
    return runs
