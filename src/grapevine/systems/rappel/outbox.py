"""The effects of one call of the host, gathered from all parts of a peer that have something to say."""

from __future__ import annotations

from collections.abc import Hashable

from grapevine.systems.contracts.peer import Address, Effect, Message, Send, SetTimer


class Outbox:
    """Effects, in the order in which they were put in."""

    def __init__(self) -> None:
        self.effects: list[Effect] = []

    def send(self, to: Address, message: Message) -> None:
        """Have a message sent to a node."""
        self.effects.append(Send(to, message))

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
