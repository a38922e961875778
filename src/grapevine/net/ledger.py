"""What a node possesses, by topic and publisher: which events came, which are missing, which are over.

A *stream* is what one publisher publishes in one topic, numbered from 1 without gaps. Its *account* says of them:

    1 … floor            over: retention has removed them, or they are older than is wanted, or nobody had them
    floor+1 … last       each is here, or missing (and asked for), or given up (asked only of who says that it has it)
    last+1 …             unknown: nobody has shown that they exist

A number is only ever shown to exist by an event, signed, of this number or a later one: what partners merely claim
changes no account. Otherwise anybody could say that a stream has come to 2^62, and whoever believes it would take the
real events for old ones. An account is opened from what the store has and merged with what came meanwhile.

Three rules hold after every call:

1. `missing` and `given_up` are disjoint, and lie above the floor and below or at `last`; `has` is true of everything
   else up to `last`. The floor and `last` never fall.
2. Bounds: a stream has at most `gap_limit` numbers that are missing or given up, all streams together have at most 20
   times as many missing. Beyond, the floor rises over the oldest, which are counted as given up: strangers who publish
   an event with a huge number cost this node no more than that.
3. Two nodes that have the same `last` and lack the same numbers, missing or given up, in every stream of a topic have
   the same digest, so equal digests mean that neither can help the other. What was given up counts: the one who has it
   may have been away.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from hashlib import blake2b

from grapevine.net.messages import Gap, Possession

Stream = tuple[int, bytes]  # topic, and the publisher's id
_MOST_GAPS = 200  # of a stream, in one message
_STREAMS_WITH_GAPS = 20  # of full length: all streams together have no more missing than these


@dataclass(slots=True)
class Account:
    """What is known of one stream. Only the ledger changes it, which counts what is missing in all of them."""

    floor: int = 0  # everything up to here is over
    last: int = 0  # the highest number that an event has shown to exist
    missing: dict[int, float] = field(default_factory=dict)  # by number: since when it is known to be missing
    asked: dict[int, int] = field(default_factory=dict)  # by missing number: how many answers did not have it
    given_up: set[int] = field(default_factory=set)  # only who says that it has them is asked; they may still come
    refused: set[int] = field(default_factory=set)  # by validators: they need not come, and are not here

    def has(self, sequence: int) -> bool:
        """Whether the event needs not come: it is here, or over."""
        if sequence <= self.floor:
            return True
        return sequence <= self.last and sequence not in self.missing and sequence not in self.given_up

    def lacking(self) -> list[int]:
        """Numbers that are missing or given up, ascending."""
        return sorted(self.missing.keys() | self.given_up)


class Ledger:
    """Accounts of all streams of the topics that a node wants or carries."""

    def __init__(self, gap_limit: int) -> None:
        self.given_up = 0  # events that nobody had
        self._gap_limit = gap_limit
        self._missing = 0  # of all streams
        self._topics: dict[int, dict[bytes, Account]] = {}
        self._digests: dict[int, int] = {}

    def open(self, topic: int, possessed: Iterable[tuple[bytes, int, int, Iterable[int]]], now: float) -> None:
        """Keep accounts of a topic from now on. Called when it is first wanted, published in or carried (`topics`).

        `possessed` is what the store has: publisher, last, floor and missing numbers of every stream. An account that
        is open already is merged with that, so what came while the store was asked is not forgotten.
        """
        accounts = self._topics.setdefault(topic, {})
        for publisher, last, floor, missing in possessed:
            gaps = dict.fromkeys(missing, now)
            stored = Account(max(floor, min(gaps, default=last + 1) - 1), max(last, floor), gaps)
            known = accounts.get(publisher)
            account = accounts[publisher] = stored if known is None else _merged(known, stored)
            self._missing += len(account.missing) - (len(known.missing) if known else 0)
            self._keep_bounds(account)
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

    def has(self, topic: int, publisher: bytes, sequence: int) -> bool:
        """Whether an event came already, or is over; False of topics and streams without an account."""
        account = self._topics.get(topic, {}).get(publisher)
        return account is not None and account.has(sequence)

    def has_room(self, topic: int, publisher: bytes, most: int) -> bool:
        """Whether the publisher has an account in the topic, or may have one: keys cost nothing, accounts do."""
        accounts = self._topics.get(topic, {})
        return publisher in accounts or len(accounts) < most

    def note(self, topic: int, publisher: bytes, sequence: int, now: float) -> bool:
        """An event came whose signature was checked; False if it needed not come. The topic must be open.

        Numbers between the last one known and this one are missing from now on.
        """
        account = self._topics[topic].setdefault(publisher, Account())
        if account.has(sequence):
            return False
        if sequence > account.last:
            self._miss(account, account.last + 1, sequence - 1, now)
            account.last = sequence
        self._found(account, sequence)
        self._digests.pop(topic, None)
        return True

    def refuse(self, topic: int, publisher: bytes, sequence: int, now: float) -> None:
        """An event came that a validator does not want: it is neither missing nor here. The topic must be open.

        As many are remembered as a stream may have gaps; of the oldest beyond that only named readers notice.
        """
        if self.note(topic, publisher, sequence, now):
            refused = self._topics[topic][publisher].refused
            refused.add(sequence)
            if len(refused) > self._gap_limit:
                refused.discard(min(refused))

    def lose(self, topic: int, publisher: bytes, sequence: int, now: float) -> None:
        """An event that came could not be kept: it is missing again."""
        account = self._topics.get(topic, {}).get(publisher)
        if account is not None and account.floor < sequence <= account.last and account.has(sequence):
            account.missing[sequence] = now
            self._missing += 1
            self._keep_bounds(account)
            self._digests.pop(topic, None)

    def nothing_below(self, topic: int, publisher: bytes, floor: int, *, lost: bool) -> None:
        """Up to this number nothing is to be had, or wanted; what was missing there counts as given up if `lost`."""
        account = self._topics[topic].setdefault(publisher, Account())
        self._raise_floor(account, floor, lost=lost)
        self._digests.pop(topic, None)

    def not_found(self, topic: int, publisher: bytes, sequences: Iterable[int], patience: int) -> None:
        """Somebody was asked for these and had none of them; after `patience` such answers a number is given up."""
        account = self._topics[topic].get(publisher)
        if account is None:
            return
        for sequence in sequences:
            if sequence in account.missing:
                account.asked[sequence] = account.asked.get(sequence, 0) + 1
                if account.asked[sequence] >= patience:
                    self._found(account, sequence)
                    account.given_up.add(sequence)
                    self.given_up += 1
                    self._digests.pop(topic, None)

    def _miss(self, account: Account, first: int, last: int, now: float) -> None:
        """All of these are missing, or as many of the last ones as the bounds allow; the floor rises over the rest."""
        first = max(first, account.floor + 1)
        room = _STREAMS_WITH_GAPS * self._gap_limit - self._missing
        enough = max(first, last - max(min(self._gap_limit, room), 0) + 1)
        if enough > first:
            self.given_up += enough - first
            self._raise_floor(account, enough - 1)
        for sequence in range(enough, last + 1):
            account.missing[sequence] = now
        self._missing += max(0, last + 1 - enough)
        self._keep_bounds(account)

    def _keep_bounds(self, account: Account) -> None:
        absent = len(account.missing) + len(account.given_up)
        excess = max(absent - self._gap_limit, min(self._missing - _STREAMS_WITH_GAPS * self._gap_limit, absent))
        if excess > 0:
            excess = min(excess + self._gap_limit // 10, absent)  # some more, or every event would sort
            self._raise_floor(account, account.lacking()[excess - 1])

    def _raise_floor(self, account: Account, floor: int, *, lost: bool = True) -> None:
        over = [sequence for sequence in account.missing if sequence <= floor]
        for sequence in over:
            self._found(account, sequence)
        account.given_up = {sequence for sequence in account.given_up if sequence > floor}
        account.refused = {sequence for sequence in account.refused if sequence > floor}
        self.given_up += len(over) if lost else 0
        account.floor = max(account.floor, floor)
        account.last = max(account.last, floor)

    def _found(self, account: Account, sequence: int) -> None:
        """It is no longer looked for, for whatever reason."""
        if account.missing.pop(sequence, None) is not None:
            self._missing -= 1
        account.asked.pop(sequence, None)
        account.given_up.discard(sequence)

    def missing(self, topic: int, before: float) -> dict[bytes, list[int]]:
        """Numbers that have been missing since before this time, ascending, by publisher; only streams with any."""
        found = {}
        for publisher, account in self._topics.get(topic, {}).items():
            if account.missing:
                old = sorted(sequence for sequence, since in account.missing.items() if since < before)
                if old:
                    found[publisher] = old
        return found

    def abandoned(self, topic: int) -> dict[bytes, list[int]]:
        """Numbers that were given up, ascending, by publisher; only streams with any."""
        accounts = self._topics.get(topic, {})
        return {publisher: sorted(account.given_up) for publisher, account in accounts.items() if account.given_up}

    def is_complete(self, topic: int) -> bool:
        """Whether nothing of the topic is missing."""
        return not any(account.missing for account in self._topics.get(topic, {}).values())

    def digest(self, topic: int) -> int:
        """64 bits of a hash over what is possessed of an open topic; the same for all who possess the same."""
        found = self._digests.get(topic)
        if found is None:
            hashed = blake2b(digest_size=8)
            for publisher, account in sorted(self._topics[topic].items()):
                if account.last:
                    hashed.update(publisher + b"%d %s" % (account.last, repr(account.lacking()).encode()))
            found = self._digests[topic] = int.from_bytes(hashed.digest(), "big")
        return found

    def possessed(self, topic: int) -> list[Possession]:
        """What a `Holdings` message tells of a topic: its streams, with the first 200 gaps of each."""
        accounts = self._topics.get(topic, {})
        return [
            (topic, publisher, account.last, tuple(gaps(account.lacking())[:_MOST_GAPS]))
            for publisher, account in accounts.items()
            if account.last
        ]

    def account(self, topic: int, publisher: bytes) -> Account | None:
        """What is known of a stream, for named readers; not to be changed. None if the topic or stream is unknown."""
        return self._topics.get(topic, {}).get(publisher)

    def last(self, topic: int, publisher: bytes) -> int:
        """The highest number that is known of a stream; 0 if none is."""
        account = self._topics.get(topic, {}).get(publisher)
        return account.last if account is not None else 0


def _merged(one: Account, other: Account) -> Account:
    """The account of a stream of which two are known: an event that one of them has is here."""
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
    return Account(floor, last, still, asked, given_up, one.refused | other.refused)


def gaps(numbers: Iterable[int]) -> list[Gap]:
    """Ascending numbers as runs from … to."""
    runs: list[Gap] = []
    for number in numbers:
        if runs and runs[-1][1] == number - 1:
            runs[-1] = runs[-1][0], number
        else:
            runs.append((number, number))
    return runs
