"""The effects of one call of the host, gathered from all parts of a peer that have something to say."""

from __future__ import annotations

from collections.abc import Hashable

from msgspec.msgpack import encode

from grapevine.systems.contracts.peer import Address, Effect, Message, Send, SetTimer

_SAMPLED = 101  # one message in so many is weighed; a prime, so that no rhythm of the protocol meets it
_ADDRESS_BYTES = 9  # of a live node: 64 bits and a type


class Scale:
    """How many bytes messages without event have as live nodes encode them, on a sample. One for a whole network.

    Simulated nodes have small numbers as addresses: named ones count as live addresses do.
    """

    def __init__(self) -> None:
        self._passed = self._weighed = self._bytes = 0

    def pass_by(self, message: Message) -> None:
        """A message is sent; some are weighed."""
        self._passed += 1
        if self._passed % _SAMPLED == 0 and not message.carries_event:
            self._weighed += 1
            self._bytes += len(encode(message)) + sum(_ADDRESS_BYTES - len(encode(node)) for node in message.named())

    @property
    def mean_bytes(self) -> float | None:
        """Of those that were weighed; None if none was."""
        return self._bytes / self._weighed if self._weighed else None


class Outbox:
    """Effects, in the order in which they were put in. A `scale` weighs what is sent; without one nobody does."""

    def __init__(self, scale: Scale | None = None) -> None:
        self.effects: list[Effect] = []
        self._scale = scale

    def send(self, to: Address, message: Message) -> None:
        """Have a message sent to a node."""
        self.effects.append(Send(to, message))
        if self._scale is not None:
            self._scale.pass_by(message)

    def timer(self, timer: Hashable, after_s: float) -> None:
        """Have `on_timer` called with this, once, after so many seconds."""
        self.effects.append(SetTimer(timer, after_s))

    def add(self, effect: Effect) -> None:
        """Have any other effect carried out."""
        self.effects.append(effect)

    def take(self) -> list[Effect]:
        """All effects since the last call; the peer returns them to its host."""
        taken, self.effects = self.effects, []
        return taken
