"""What a node holds, by topic and publisher: which events came, which are missing, which are over.

A stream is what one publisher publishes in one topic, numbered from 1. Up to its floor nothing is missing any more:
retention has removed it, or it is older than what the node wants, or nobody had it. Above the floor and up to the last
number seen, every event is here, missing, or given up. Two nodes that hold the same of a topic have the same digest.

Only what a publisher signed changes an account: it takes an event to show that those before it exist. Otherwise anybody
could say that a stream has come to 2^62, and whoever believes it would take the real events for old ones.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from hashlib import blake2b

from grapevine.net.messages import Gap, Possession

Stream = tuple[int, bytes]  # topic, and the publisher's id
_GAPS_TOLD = 200  # of a stream, in one message
_STREAMS_WITH_GAPS = 20  # of full length: all streams together have no more missing than these


@dataclass(slots=True)
class Account:
    """Of one stream."""

    floor: int = 0
    last: int = 0
    missing: dict[int, float] = field(default_factory=dict)  # and since when that is known
    asked: dict[int, int] = field(default_factory=dict)  # answers that did not have it
    given_up: set[int] = field(default_factory=set)  # nobody is asked for them any more; they may still come

    def has(self, sequence: int) -> bool:
        """Whether the event came, or is over."""
        if sequence <= self.floor:
            return True
        return sequence <= self.last and sequence not in self.missing and sequence not in self.given_up


class Ledger:
    """Accounts of all streams of the topics that a node wants or carries."""

    def __init__(self, gap_limit: int) -> None:
        self.given_up = 0  # events that nobody had
        self._gap_limit = gap_limit
        self._missing = 0  # of all streams
        self._topics: dict[int, dict[bytes, Account]] = {}
        self._digests: dict[int, int] = {}

    def open(self, topic: int, possessed: Iterable[tuple[bytes, int, int, Iterable[int]]], now: float) -> None:
        """A topic whose events are wanted from now on; what a store holds of it. What came meanwhile stays."""
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
        """It is no longer wanted."""
        for account in self._topics.pop(topic, {}).values():
            self._missing -= len(account.missing)
        self._digests.pop(topic, None)

    def __contains__(self, topic: int) -> bool:
        return topic in self._topics

    def topics(self) -> list[int]:
        """All that are open."""
        return list(self._topics)

    def has(self, topic: int, publisher: bytes, sequence: int) -> bool:
        """Whether an event came already, or is over."""
        account = self._topics.get(topic, {}).get(publisher)
        return account is not None and account.has(sequence)

    def has_room(self, topic: int, publisher: bytes, most: int) -> bool:
        """Whether the publisher has an account in the topic, or may have one; keys cost nothing."""
        accounts = self._topics.get(topic, {})
        return publisher in accounts or len(accounts) < most

    def note(self, topic: int, publisher: bytes, sequence: int, now: float) -> bool:
        """An event came; False if it had before. What it shows to be missing is missing from now on."""
        account = self._topics[topic].setdefault(publisher, Account())
        if account.has(sequence):
            return False
        if sequence > account.last:
            self._miss(account, account.last + 1, sequence - 1, now)
            account.last = sequence
        self._found(account, sequence)
        self._digests.pop(topic, None)
        return True

    def lose(self, topic: int, publisher: bytes, sequence: int, now: float) -> None:
        """An event that came could not be kept: it is missing again."""
        account = self._topics.get(topic, {}).get(publisher)
        if account is not None and account.floor < sequence <= account.last and account.has(sequence):
            account.missing[sequence] = now
            self._missing += 1
            self._keep_bounds(account)
            self._digests.pop(topic, None)

    def nothing_below(self, topic: int, publisher: bytes, floor: int, *, lost: bool) -> None:
        """Up to here nothing is to be had, or wanted; `lost` if that is a pity."""
        account = self._topics[topic].setdefault(publisher, Account())
        self._raise_floor(account, floor, lost=lost)
        self._digests.pop(topic, None)

    def not_found(self, topic: int, publisher: bytes, sequences: Iterable[int], patience: int) -> None:
        """Somebody was asked for these and had none; after a few such answers they are given up."""
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
        """All of these are missing, or as many of the last ones as can be asked for."""
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
            self._raise_floor(account, sorted(account.missing.keys() | account.given_up)[excess - 1])

    def _raise_floor(self, account: Account, floor: int, *, lost: bool = True) -> None:
        over = [sequence for sequence in account.missing if sequence <= floor]
        for sequence in over:
            self._found(account, sequence)
        account.given_up = {sequence for sequence in account.given_up if sequence > floor}
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
        """What has been missing since before this time, by publisher."""
        found = {}
        for publisher, account in self._topics.get(topic, {}).items():
            if account.missing:
                old = sorted(sequence for sequence, since in account.missing.items() if since < before)
                if old:
                    found[publisher] = old
        return found

    def is_complete(self, topic: int) -> bool:
        """Whether nothing of the topic is missing."""
        return not any(account.missing for account in self._topics.get(topic, {}).values())

    def digest(self, topic: int) -> int:
        """64 bits of a hash over what is held; the same for all who hold the same."""
        found = self._digests.get(topic)
        if found is None:
            hashed = blake2b(digest_size=8)
            for publisher, account in sorted(self._topics[topic].items()):
                if account.last:
                    hashed.update(publisher + b"%d %s" % (account.last, repr(sorted(account.missing)).encode()))
            found = self._digests[topic] = int.from_bytes(hashed.digest(), "big")
        return found

    def possessed(self, topic: int) -> list[Possession]:
        """What is held of a topic, to be told."""
        accounts = self._topics.get(topic, {})
        return [
            (topic, publisher, account.last, tuple(gaps(sorted(account.missing))[:_GAPS_TOLD]))
            for publisher, account in accounts.items()
            if account.last
        ]

    def last(self, topic: int, publisher: bytes) -> int:
        """The last number seen of a stream; 0 if none."""
        account = self._topics.get(topic, {}).get(publisher)
        return account.last if account is not None else 0


def _merged(one: Account, other: Account) -> Account:
    """What either has is here."""
    floor, last = max(one.floor, other.floor), max(one.last, other.last)
    missing = {
        sequence: since
        for account, counterpart in ((one, other), (other, one))
        for sequence, since in account.missing.items()
        if sequence > floor and not counterpart.has(sequence)
    }
    asked = {sequence: times for sequence, times in one.asked.items() if sequence in missing}
    given_up = {sequence for sequence in one.given_up if sequence > floor and not other.has(sequence)}
    return Account(floor, last, {n: since for n, since in missing.items() if n not in given_up}, asked, given_up)


def gaps(numbers: Iterable[int]) -> list[Gap]:
    """Ascending numbers as runs from … to."""
    runs: list[Gap] = []
    for number in numbers:
        if runs and runs[-1][1] == number - 1:
            runs[-1] = runs[-1][0], number
        else:
            runs.append((number, number))
    return runs
