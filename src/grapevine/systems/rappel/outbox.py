"""What a peer answers with, gathered while it thinks."""

from __future__ import annotations

from collections.abc import Hashable

from grapevine.systems.contracts.peer import Address, Effect, Message, Send, SetTimer


class Outbox:
    """Effects in the order in which they came up."""

    def __init__(self) -> None:
        self.effects: list[Effect] = []

    def send(self, to: Address, message: Message) -> None:
        """A message."""
        self.effects.append(Send(to, message))

    def timer(self, timer: Hashable, after_s: float) -> None:
        """A timer."""
        self.effects.append(SetTimer(timer, after_s))

    def add(self, effect: Effect) -> None:
        """Anything else."""
        self.effects.append(effect)

    def take(self) -> list[Effect]:
        """All of them; the box is empty then."""
        taken, self.effects = self.effects, []
        return taken
