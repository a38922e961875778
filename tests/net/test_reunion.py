"""Finding others: bootstrap nodes first and again, and old acquaintances, so that what fell apart comes together."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from dataclasses import dataclass, field
from random import Random
from typing import Any, cast

import pytest

from grapevine.model.errors import PeerError
from grapevine.model.identity import PeerId
from grapevine.net import reunion as module
from grapevine.net.contacts import Contacts
from grapevine.net.reunion import Reunion
from grapevine.systems.contracts.peer import Address
from tests.net.hostile import contact_of, eventually
from tests.net.nodes import during

ALICE, BOB = PeerId.of(b"alice"), PeerId.of(b"bob")
AT_ALICE, AT_BOB = ("10.0.0.1", 1), ("10.0.0.2", 2)


@dataclass
class Calls:
    """The part of `Connections` that a reunion uses: endpoints with or without somebody, and who is connected."""

    there: dict[tuple[str, int], PeerId]
    contacts: Contacts = field(default_factory=lambda: Contacts(100))
    open: dict[Address, tuple[str, int]] = field(default_factory=dict)
    called: list[tuple[str, int]] = field(default_factory=list)

    async def call(self, host: str, port: int) -> PeerId:
        self.called.append((host, port))
        await asyncio.sleep(0)
        if (host, port) not in self.there:
            raise PeerError("nobody is there")
        self.open[self.there[host, port].address] = host, port
        return self.there[host, port]

    def is_connected_to(self, host: str, port: int) -> bool:
        return (host, port) in self.open.values()

    def connection(self, address: Address) -> object | None:
        return self.open.get(address)

    @property
    def open_connections(self) -> int:
        return len(self.open)


def reunion_of(calls: Calls, *endpoints: tuple[str, int]) -> tuple[Reunion, list[Address]]:
    met: list[Address] = []
    reunion = Reunion(cast(Any, calls), 0.01, met.append, Random(1))
    reunion.endpoints = list(endpoints)
    return reunion, met


@pytest.fixture(autouse=True)
def hurried(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.setattr(module, "_EVERY_S", 0.01)
    yield


def test_whoever_is_called_is_introduced_to_the_peer() -> None:
    async def scenario() -> None:
        reunion, met = reunion_of(Calls({AT_ALICE: ALICE}))
        await reunion.call(*AT_ALICE)
        assert met == [ALICE.address]
        with pytest.raises(PeerError):
            await reunion.call(*AT_BOB)
        assert met == [ALICE.address]

    during(scenario())


def test_one_bootstrap_node_that_is_gone_does_not_keep_us_from_the_next() -> None:
    async def scenario() -> None:
        calls = Calls({AT_BOB: BOB})
        reunion, met = reunion_of(calls, AT_ALICE, AT_BOB)
        await reunion.call_all()
        assert met == [BOB.address] and calls.called == [AT_ALICE, AT_BOB]
        await reunion.call_all()
        assert calls.called == [AT_ALICE, AT_BOB, AT_ALICE], "who is connected is not called again"

    during(scenario())


def test_a_bootstrap_node_that_was_lost_is_called_again_until_it_is_back() -> None:
    async def scenario() -> None:
        calls = Calls({AT_ALICE: ALICE})
        reunion, met = reunion_of(calls, AT_ALICE)
        running = asyncio.create_task(reunion.run())
        await eventually(lambda: met == [ALICE.address])
        calls.there.clear()
        calls.open.clear()
        before = len(calls.called)
        await eventually(lambda: len(calls.called) > before + 2)
        assert met == [ALICE.address]
        calls.there[AT_ALICE] = ALICE
        await eventually(lambda: met == [ALICE.address, ALICE.address])
        running.cancel()

    during(scenario())


def test_old_acquaintances_that_are_not_connected_are_met_now_and_then_and_others_are_not() -> None:
    async def scenario() -> None:
        calls = Calls({})
        old, present = contact_of("old"), contact_of("present")
        for contact in (old, present):
            calls.contacts.learn(contact)
        calls.open[present.id.address] = "10.0.0.9", 9
        reunion, met = reunion_of(calls)
        running = asyncio.create_task(reunion.run())
        await eventually(lambda: len(met) >= 3)
        running.cancel()
        assert set(met) == {old.id.address}

    during(scenario())


def test_a_node_that_knows_nobody_waits() -> None:
    async def scenario() -> None:
        calls = Calls({})
        reunion, met = reunion_of(calls)
        running = asyncio.create_task(reunion.run())
        for _ in range(20):
            await asyncio.sleep(0)
        assert not running.done() and not met and not calls.called
        running.cancel()

    during(scenario())
