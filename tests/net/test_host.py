"""The host of a peer: it does what the peer wants, and a peer's mistake is counted and stops nothing."""

from __future__ import annotations

import asyncio
from collections import Counter
from typing import Any, cast

import pytest

from grapevine.model.errors import PeerError
from grapevine.net import host as module
from grapevine.net.host import Host
from grapevine.net.messages import Seek
from grapevine.systems.contracts.peer import Address, Effects, Finished, LinkDown, LinkUp, Peer, Send, SetTimer
from tests.net.hostile import eventually
from tests.net.nodes import during


class Obedient(Peer):
    """Answers every message with the effects that the test has put there."""

    def __init__(self) -> None:
        self.effects: Effects = []
        self.told: list[Any] = []
        self.fails = 0

    def start(self, now: float) -> Effects:
        self.told.append("start")
        return []

    def on_message(self, now: float, sender: Address, message: Any) -> Effects:
        self.told.append((sender, message))
        if isinstance(message, Seek) and message.node < 0:
            self.excesses += 1
        return self.effects

    def on_timer(self, now: float, timer: Any) -> Effects:
        self.told.append(timer)
        if self.fails:
            self.fails -= 1
            raise ZeroDivisionError
        return []

    def on_unreachable(self, now: float, node: Address) -> Effects:
        self.told.append(("unreachable", node))
        return []

    def subscribe(self, now: float, topic: int) -> Effects:
        self.told.append(("subscribe", topic))
        return []


class Connections:
    """What a host uses of all connections."""

    def __init__(self) -> None:
        self.pinned: set[Address] = set()
        self.sent: list[tuple[Address, Any]] = []
        self.blamed: list[str] = []
        self.connected = [1]

    def send(self, to: Address, message: Any) -> None:
        self.sent.append((to, message))

    def connection(self, address: Address) -> object | None:
        return object() if address in self.connected else None

    def blame(self, connection: object, misconduct: str, points: int, error: PeerError) -> None:
        self.blamed.append(misconduct)


class System:
    """Makes the peer of the test."""

    def __init__(self) -> None:
        self.made = Obedient()
        self.given: tuple[Any, ...] = ()

    def peer(self, *given: Any) -> Peer:
        self.given = given
        return self.made

    def join(self, peer: Obedient, now: float, topic: int) -> Effects:
        peer.told.append(("join", topic))
        return []


class World:
    def __init__(self) -> None:
        self.system, self.connections = System(), Connections()
        self.host = Host(cast(Any, self.system), cast(Any, self.connections))

    @property
    def peer(self) -> Obedient:
        return self.system.made


def test_nothing_reaches_a_peer_before_its_start_and_after_its_end() -> None:
    async def scenario() -> None:
        world = World()
        world.host.subscribe(5)
        world.host.on_unreachable(1)
        world.host.start([3, 4], 9)
        assert world.system.given == ([3, 4], [1], 9)
        world.host.subscribe(6)
        world.host.join(7)
        world.host.stop()
        world.host.subscribe(8)
        assert world.peer.told == ["start", ("subscribe", 6), ("join", 7)]

    during(scenario())


def test_what_a_peer_wants_is_done() -> None:
    async def scenario() -> None:
        world = World()
        world.host.start([], 1)
        world.peer.effects = [Send(2, Seek(3)), LinkUp(4), LinkUp(5), LinkDown(5), SetTimer("ring", 0.0), Finished()]
        world.host.on_message(1, Seek(0))
        assert world.connections.sent == [(2, Seek(3))] and world.connections.pinned == {4}
        assert world.host.finished.is_set()
        await eventually(lambda: "ring" in world.peer.told)
        world.host.on_unreachable(4)
        assert world.connections.pinned == set() and world.peer.told[-1] == ("unreachable", 4)

    during(scenario())


def test_a_timer_whose_handler_fails_fires_again(monkeypatch: pytest.MonkeyPatch) -> None:
    async def scenario() -> None:
        monkeypatch.setattr(module, "_AGAIN_S", 0.0)
        world = World()
        world.host.start([], 1)
        world.peer.effects, world.peer.fails = [SetTimer("ring", 0.0)], 2
        world.host.on_message(1, Seek(0))
        await eventually(lambda: world.peer.told.count("ring") == 3)
        assert world.host.failures == Counter(ZeroDivisionError=2)

    during(scenario())


def test_timers_end_with_the_session() -> None:
    async def scenario() -> None:
        world = World()
        world.host.start([], 1)
        world.peer.effects = [SetTimer("ring", 0.0)]
        world.host.on_message(1, Seek(0))
        world.host.stop()
        for _ in range(5):
            await asyncio.sleep(0)
        assert "ring" not in world.peer.told

    during(scenario())


def test_who_asks_too_much_is_blamed_and_others_are_not() -> None:
    async def scenario() -> None:
        world = World()
        world.host.start([], 1)
        world.host.on_message(1, Seek(5))
        assert world.connections.blamed == []
        world.host.on_message(1, Seek(-5))
        world.host.on_message(2, Seek(-5))  # has gone meanwhile: there is nobody to blame
        assert world.connections.blamed == ["excess"]

    during(scenario())
