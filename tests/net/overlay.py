"""An overlay that is only a notebook: what topics and publications tell a peer, without one."""

from __future__ import annotations

from grapevine.systems.contracts.peer import Address


class Overlay:
    """A peer that does what it is told, and notes it."""

    def __init__(self) -> None:
        self.now = 0.0
        self.told: list[tuple[str, int]] = []
        self.members: set[int] = set()
        self.relayed: set[int] = set()

    def subscribe(self, topic_id: int) -> None:
        self.told.append(("subscribe", topic_id))
        self.members.add(topic_id)

    def unsubscribe(self, topic_id: int) -> None:
        self.told.append(("unsubscribe", topic_id))
        self.members.discard(topic_id)

    def join(self, topic_id: int) -> None:
        self.told.append(("join", topic_id))
        self.members.add(topic_id)

    def carried(self) -> set[int]:
        return self.members | self.relayed

    def partners(self, topic_id: int) -> list[Address]:
        return [7] if topic_id in self.carried() else []
