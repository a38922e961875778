"""Messages that a client has not acknowledged, and how far what it has acknowledged reaches in the node.

`Outgoing` is the client's side: packet identifiers, which outlive a connection (MQTT-4.4.0-1), and the steps of QoS 2.

    new ──number_for──▶ SENT ──PUBACK──▶ forgotten
                        SENT ──PUBREC──▶ RELEASED ──PUBCOMP──▶ DONE ──the node has noted it──▶ forgotten

A message of a named reader comes from the node again until the reader has acknowledged it there, after a crash too.
What it meets here decides what happens to it: SENT, it is sent again under its old number; RELEASED or DONE, the client
has it, and only the node has to be told. So no number is used for another message while a client may remember it, and
no message of QoS 2 gets to a client twice, as long as RELEASED is kept before PUBREL is sent.

`Progress` is the node's side: a reader acknowledges all events of a source (a publisher in one of its epochs) up to
one, clients acknowledge them one by one and in any order. What is acknowledged in the node is the stretch without a
gap.
"""

from __future__ import annotations

from collections import deque

import msgspec

SENT, RELEASED, DONE = 0, 1, 2
_NUMBERS = 65_535

Key = tuple[str, bytes, int]  # of an event: topic, source, sequence


class Pending(msgspec.Struct):
    """A message that is not over."""

    key: Key
    qos: int
    number: int  # packet identifier; 0: given back
    stage: int = SENT


class Outgoing:
    """What one session owes its client. It is made of, and kept as, a list of pending messages."""

    def __init__(self, pending: list[Pending] | None = None) -> None:
        self._by_key = {one.key: one for one in pending or ()}
        self._by_number = {one.number: one for one in pending or () if one.number}
        self._last = max(self._by_number, default=0)

    def pending(self) -> list[Pending]:
        """All that is not over, the oldest first."""
        return list(self._by_key.values())

    def find_key(self, key: Key) -> Pending | None:
        """A message that is not over, by what it is."""
        return self._by_key.get(key)

    def number_for(self, key: Key, qos: int) -> tuple[Pending, bool]:
        """A message that is to be sent, with its identifier, and whether it was sent before."""
        if (found := self._by_key.get(key)) is not None:
            return found, True
        while True:
            self._last = self._last % _NUMBERS + 1
            if self._last not in self._by_number:
                break
        made = self._by_key[key] = self._by_number[self._last] = Pending(key, qos, self._last)
        return made, False

    def acknowledge(self, number: int) -> Pending | None:
        """PUBACK, or a refusal: the message is over. None if it was not waiting for that."""
        found = self._by_number.get(number)
        if found is None or found.stage != SENT:
            return None
        self.forget(found.key)
        return found

    def release(self, number: int) -> Pending | None:
        """PUBREC: the client has the message, and the number is still taken. None if nothing has this number."""
        found = self._by_number.get(number)
        if found is not None and found.qos == 2:
            found.stage = RELEASED
            return found
        return None

    def complete(self, number: int) -> Pending | None:
        """PUBCOMP: the number is free. The message is remembered until `forget`."""
        found = self._by_number.get(number)
        if found is None or found.stage != RELEASED:
            return None
        del self._by_number[number]
        found.number, found.stage = 0, DONE
        return found

    def forget(self, key: Key) -> None:
        """The message is over: the node will not bring it again, or it may come again as a new one."""
        found = self._by_key.pop(key, None)
        if found is not None and found.number:
            del self._by_number[found.number]

    def forget_retained(self) -> None:
        """The connection has ended, and retained messages do not come again. Their sequences are negative here."""
        for key in [key for key in self._by_key if key[2] < 0]:
            self.forget(key)


class Progress:
    """Of one reader: what was handed over, and what of it was acknowledged, by source."""

    def __init__(self) -> None:
        self._waiting: dict[bytes, deque[int]] = {}  # handed over, and not acknowledged in the node
        self._done: dict[bytes, set[int]] = {}  # acknowledged by the client, behind one that is not

    def hand_over(self, source: bytes, sequence: int) -> None:
        """Called in the order of a source's numbers; of a gap with its last one."""
        self._waiting.setdefault(source, deque()).append(sequence)

    def acknowledge(self, source: bytes, sequence: int) -> None:
        """The client has this one, whatever it has of those before."""
        self._done.setdefault(source, set()).add(sequence)

    def due(self) -> dict[bytes, list[int]]:
        """By source what can be acknowledged in the node, in order; it is not due again."""
        found: dict[bytes, list[int]] = {}
        for source, done in list(self._done.items()):
            waiting = self._waiting.get(source, deque())
            while waiting and waiting[0] in done:
                done.discard(waiting[0])
                found.setdefault(source, []).append(waiting.popleft())
            if not done:
                del self._done[source]
        return found
