"""What a node holds, by topic and publisher: which events came, which are missing, which are over.

A stream is what one publisher publishes in one topic, numbered from 1. Up to its floor nothing is missing any more:
retention has removed it, or it is older than what the node wants, or nobody had it. Above the floor and up to the last
number seen, every event is here or missing. Two nodes that hold the same of a topic have the same digest of it.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from hashlib import blake2b

from grapevine.net.messages import Gap, Held

Stream = tuple[int, bytes]  # topic, and the publisher's id
_GAPS_TOLD = 200  # of a stream, in one message


@dataclass(slots=True)
class Account:
    """Of one stream."""

    floor: int = 0
    last: int = 0
    missing: dict[int, float] = field(default_factory=dict)  # and since when that is known
    asked: dict[int, int] = field(default_factory=dict)  # answers that did not have it

    def has(self, sequence: int) -> bool:
        """Whether the event came, or is over."""
        return sequence <= self.floor or (sequence <= self.last and sequence not in self.missing)


class Ledger:
    """Accounts of all streams of the topics that a node wants or carries."""

    def __init__(self, gap_limit: int) -> None:
        self.given_up = 0  # events that nobody had
        self._gap_limit = gap_limit
        self._topics: dict[int, dict[bytes, Account]] = {}
        self._digests: dict[int, int] = {}

    def open(self, topic: int, held: Iterable[tuple[bytes, int, int, Iterable[int]]], now: float) -> None:
        """A topic whose events are wanted from now on; what a store holds of it."""
        accounts = self._topics.setdefault(topic, {})
        for publisher, last, floor, missing in held:
            gaps = dict.fromkeys(missing, now)
            accounts[publisher] = Account(max(floor, min(gaps, default=last + 1) - 1), last, gaps)
        self._digests.pop(topic, None)

    def close(self, topic: int) -> None:
        """It is no longer wanted."""
        self._topics.pop(topic, None)
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

    def note(self, topic: int, publisher: bytes, sequence: int, now: float) -> bool:
        """An event came; False if it had before. What it shows to be missing is missing from now on."""
        account = self._topics[topic].setdefault(publisher, Account())
        if account.has(sequence):
            return False
        if sequence > account.last:
            self._expect(account, sequence - 1, now)
            account.last = sequence
        account.missing.pop(sequence, None)
        account.asked.pop(sequence, None)
        self._digests.pop(topic, None)
        return True

    def lose(self, topic: int, publisher: bytes, sequence: int, now: float) -> None:
        """An event that came could not be kept: it is missing again."""
        account = self._topics.get(topic, {}).get(publisher)
        if account is not None and sequence > account.floor:
            account.missing[sequence] = now
            self._digests.pop(topic, None)

    def expect(self, topic: int, publisher: bytes, last: int, now: float) -> None:
        """Others have events up to this one."""
        account = self._topics[topic].setdefault(publisher, Account())
        if last > account.last:
            self._expect(account, last, now)
            account.last = last
            self._digests.pop(topic, None)

    def _expect(self, account: Account, last: int, now: float) -> None:
        first = max(account.last, account.floor) + 1
        if last - first >= self._gap_limit:  # far ahead: more than can be asked for
            first = last - self._gap_limit + 1
            self._raise_floor(account, first - 1)
        for sequence in range(first, last + 1):
            account.missing[sequence] = now
        while len(account.missing) > self._gap_limit:
            self._raise_floor(account, min(account.missing))

    def nothing_below(self, topic: int, publisher: bytes, floor: int, *, lost: bool) -> None:
        """Up to here nothing is to be had, or wanted; `lost` if that is a pity."""
        account = self._topics[topic].setdefault(publisher, Account())
        self._raise_floor(account, floor, lost=lost)
        self._digests.pop(topic, None)

    def _raise_floor(self, account: Account, floor: int, *, lost: bool = True) -> None:
        over = [sequence for sequence in account.missing if sequence <= floor]
        for sequence in over:
            del account.missing[sequence]
            account.asked.pop(sequence, None)
        self.given_up += len(over) if lost else 0
        account.floor = max(account.floor, floor)
        account.last = max(account.last, floor)

    def not_found(self, topic: int, publisher: bytes, sequences: Iterable[int], patience: int) -> None:
        """Somebody was asked for these and had none; after a few such answers they are given up."""
        account = self._topics[topic].get(publisher)
        if account is None:
            return
        for sequence in sequences:
            if sequence in account.missing:
                account.asked[sequence] = account.asked.get(sequence, 0) + 1
                if account.asked[sequence] >= patience:
                    del account.missing[sequence], account.asked[sequence]
                    self.given_up += 1
                    self._digests.pop(topic, None)

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

    def held(self, topic: int) -> list[Held]:
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


def gaps(numbers: Iterable[int]) -> list[Gap]:
    """Ascending numbers as runs from … to."""
    runs: list[Gap] = []
    for number in numbers:
        if runs and runs[-1][1] == number - 1:
            runs[-1] = runs[-1][0], number
        else:
            runs.append((number, number))
    return runs
