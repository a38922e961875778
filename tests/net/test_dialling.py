"""Dialling: messages wait for a connection, within bounds, and who cannot be reached is left alone for a while."""

from __future__ import annotations

import asyncio
from collections import Counter

from grapevine.model.errors import PeerError
from grapevine.net import dialling as module
from grapevine.net.contacts import Contact
from grapevine.net.dialling import Dialling
from grapevine.net.messages import Seek
from grapevine.systems.contracts.peer import Address
from tests.net.hostile import contact_of, eventually
from tests.net.nodes import during


class World:
    """Somebody who can be dialled, or not, when the test says so."""

    def __init__(self, retry_s: float = 60.0) -> None:
        self.counts: Counter[str] = Counter()
        self.dialled: list[Contact] = []
        self.lost: list[Address] = []
        self.known: Contact | None = contact_of("alice")
        self.answers = asyncio.Event()
        self.is_there = True
        self.dialling = Dialling(
            retry_s, self.counts, locate=self.locate, connect=self.connect, unreachable=self.lost.append
        )

    async def locate(self, address: Address) -> Contact | None:
        return self.known

    async def connect(self, contact: Contact) -> None:
        self.dialled.append(contact)
        await self.answers.wait()
        if not self.is_there:
            raise PeerError("nobody is there")


def test_messages_wait_in_order_for_one_dial() -> None:
    async def scenario() -> None:
        world = World()
        for number in range(3):
            world.dialling.send(5, Seek(number))
        await eventually(lambda: world.dialled == [contact_of("alice")])
        assert world.dialling.pending == 3
        assert world.dialling.on_open(5) == [Seek(0), Seek(1), Seek(2)] and world.dialling.pending == 0
        world.dialling.close()

    during(scenario())


def test_more_than_may_wait_is_dropped_and_counted() -> None:
    async def scenario() -> None:
        world = World()
        for number in range(100):
            world.dialling.send(5, Seek(number))
        assert world.dialling.pending == 64 and world.counts["dropped_pending"] == 36
        for address in range(2_000):
            world.dialling.send(100 + address, Seek(0))
        assert len(world.dialling._dials) == module._MOST_BEGUN
        world.dialling.close()

    during(scenario())


def test_only_some_dial_at_once() -> None:
    async def scenario() -> None:
        world = World()
        for address in range(50):
            world.dialling.send(address, Seek(0))
        await eventually(lambda: len(world.dialled) == 16)
        await asyncio.sleep(0)
        assert len(world.dialled) == 16
        world.answers.set()
        await eventually(lambda: len(world.dialled) == 50)

    during(scenario())


def test_who_cannot_be_reached_is_told_each_time_and_dialled_once() -> None:
    async def scenario() -> None:
        world = World()
        world.is_there = False
        world.answers.set()
        for times in range(1, 4):
            world.dialling.send(5, Seek(0))
            await eventually(lambda times=times: world.lost == [5] * times)  # type: ignore[misc]
        assert len(world.dialled) == 1 and world.counts["dropped_unreachable"] == world.counts["unreachable"] == 3
        world.dialling.on_open(5)  # it dialled us: so it is there after all
        world.dialling.send(5, Seek(0))
        await eventually(lambda: len(world.dialled) == 2)

    during(scenario())


def test_after_a_while_it_is_tried_again() -> None:
    async def scenario() -> None:
        world = World(retry_s=0.0)
        world.is_there = False
        world.answers.set()
        for times in (1, 2):
            world.dialling.send(5, Seek(0))
            await eventually(lambda times=times: len(world.lost) == times)  # type: ignore[misc]
        assert len(world.dialled) == 2

    during(scenario())


def test_nobody_is_told_of_dials_that_closing_ended() -> None:
    async def scenario() -> None:
        world = World()
        world.dialling.send(5, Seek(0))
        await eventually(lambda: world.dialled)
        world.dialling.close()
        world.dialling.send(6, Seek(0))
        await eventually(lambda: not world.dialling._dials)
        assert world.lost == [] and len(world.dialled) == 1

    during(scenario())
