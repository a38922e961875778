"""From a message to the disk and then to readers: what is checked, what is refused, and what a full disk does."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, cast

import pytest

from grapevine.model.errors import PeerError
from grapevine.model.identity import PeerId
from grapevine.net.arrivals import Arrivals
from grapevine.net.chronicle import Chronicle
from grapevine.net.config import NodeConfig
from grapevine.net.epochs import Epochs
from grapevine.net.identity import Identity
from grapevine.net.incoming import Incoming
from grapevine.net.ledger import Ledger
from grapevine.net.live_system import live_system
from grapevine.net.messages import Digest, Holdings, Kept, Seek, Want
from grapevine.net.stamp import source_of
from grapevine.net.store import Store, StoreError
from grapevine.net.surroundings import Surroundings
from grapevine.net.topics import Topics
from grapevine.net.verdicts import Verdict
from grapevine.net.witness import Witness
from grapevine.systems.vitis.peer.messages import Notify
from tests.net.hostile import envelope, eventually
from tests.net.nodes import during
from tests.net.overlay import Overlay

X = 1


@dataclass
class Sender:
    """A connection, as arrivals use one."""

    address: int = 99


class Connections:
    """Whom arrivals blame, and the clock."""

    def __init__(self, identity: Identity) -> None:
        self.identity, self.loop = identity, asyncio.get_running_loop()
        self.blamed: list[str] = []

    def blame(self, connection: Sender, misconduct: str, points: int, error: PeerError) -> None:
        self.blamed.append(misconduct)


class Host(Overlay):
    """Notes what reaches the peer."""

    is_running = True

    def __init__(self) -> None:
        super().__init__()
        self.passed_on: list[Any] = []

    def on_message(self, sender: int, message: Any) -> None:
        self.passed_on.append(message)


class World:
    def __init__(self, folder: Path, store: Store) -> None:
        self.me, self.alice = Identity.open(folder / "me"), Identity.open(folder / "alice")
        self.store, self.host, self.ledger = store, Host(), Ledger(100)
        self.connections = Connections(self.me)
        config = NodeConfig(payload_bytes=100)
        chronicle = Chronicle(self.me.id, None)
        self.topics = Topics(config, store, self.ledger, self.host, chronicle, lambda: 0)
        system = live_system("vitis", {}, self.me.id)
        self.witness = Witness(self.ledger, store, cast(Any, self.connections))
        epochs = Epochs(self.me.id, 0, store, Surroundings())
        self.arrivals = Arrivals(
            *(config, system, cast(Any, self.connections), self.ledger, store, self.topics),
            *(self.witness, epochs, lambda: 0),
        )
        self.recovered: list[Any] = []
        self.incoming = Incoming(
            cast(Any, self.host),
            self.topics,
            self.ledger,
            self.arrivals,
            cast(Any, self),
            cast(Any, self),
            cast(Any, self),
            chronicle,
        )

    def on_digest(self, connection: Any, message: Any) -> None:
        self.recovered.append(message)

    def on_news(self, connection: Any, topic: int, source: bytes) -> None:
        return

    on_holdings = on_want = on_kept = on_confirm = on_confirmed = on_digest

    def notify(self, sequence: int, payload: bytes = b"news", **changes: Any) -> Notify:
        publisher = changes.get("publisher", self.alice.id)
        return Notify(X, sequence, publisher.address, envelope(self.alice, X, sequence, payload))

    def receive(self, message: Any) -> None:
        self.incoming.receive(cast(Any, Sender()), message)


@asynccontextmanager
async def world_in(folder: Path) -> AsyncIterator[World]:
    async with await Store.open(folder, synced=False) as store:
        world = World(folder, store)
        keeping = asyncio.create_task(world.arrivals.keep())
        try:
            yield world
        finally:
            keeping.cancel()


def test_a_pushed_event_of_a_wanted_topic_is_passed_on_kept_and_delivered_once(tmp_path: Path) -> None:
    async def scenario() -> None:
        async with world_in(tmp_path) as world:
            await world.topics.want(X, "x", 0)
            for _ in range(2):
                world.receive(world.notify(1))
            assert len(world.host.passed_on) == 2
            await world.arrivals.all_kept()
            kept = await world.store.find(source_of(world.alice.id), X, [1])
            assert len(kept) == 1 and not world.arrivals.waiting and not world.connections.blamed

    during(scenario())


def test_an_event_of_a_topic_that_nobody_here_has_to_do_with_is_passed_on_and_not_kept(tmp_path: Path) -> None:
    async def scenario() -> None:
        async with world_in(tmp_path) as world:
            world.receive(world.notify(1))
            assert len(world.host.passed_on) == 1 and not world.arrivals.waiting and X not in world.ledger

    during(scenario())


@pytest.mark.parametrize("crime", ["payload", "publisher", "sequence"])
def test_a_forged_event_goes_nowhere_and_its_sender_is_blamed(tmp_path: Path, crime: str) -> None:
    async def scenario() -> None:
        async with world_in(tmp_path) as world:
            await world.topics.want(X, "x", 0)
            right = world.notify(1)
            forged = {
                "payload": Notify(X, 1, right.publisher, right.payload[:-1] + b"!"),
                "publisher": world.notify(1, publisher=PeerId.of(b"mallory")),
                "sequence": Notify(X, 2, right.publisher, right.payload),
            }
            world.receive(forged[crime])
            assert world.connections.blamed == ["forged"] and not world.host.passed_on and not world.arrivals.waiting

    during(scenario())


def test_a_payload_that_is_too_long_for_this_node_goes_nowhere_and_nobody_is_blamed(tmp_path: Path) -> None:
    async def scenario() -> None:
        async with world_in(tmp_path) as world:
            world.receive(world.notify(1, b"x" * 100))
            world.receive(world.notify(2, b"x" * 101))
            assert world.connections.blamed == [] and len(world.host.passed_on) == 1
            assert world.arrivals.rejected == {"too long": 1}

    during(scenario())


def test_refused_events_of_throw_away_keys_open_no_more_accounts_than_others(tmp_path: Path) -> None:
    async def scenario() -> None:
        async with world_in(tmp_path) as world:
            await world.topics.want(X, "x", 0)
            world.arrivals._config = NodeConfig(publishers=2)
            world.arrivals.validators[X] = [lambda event: Verdict.IGNORE]
            keys = [Identity.open(tmp_path / name) for name in "abcde"]
            for key in keys:
                world.receive(Notify(X, 1, key.id.address, envelope(key, X, 1, b"news")))
            known = [world.ledger.account(X, source_of(key.id)) is not None for key in keys]
            assert known == [True, True, False, False, False]
            assert world.arrivals.rejected["too many publishers"] == 3

    during(scenario())


def test_what_a_full_disk_refuses_is_missing_again_and_comes_later(tmp_path: Path) -> None:
    async def scenario() -> None:
        async with world_in(tmp_path) as world:
            await world.topics.want(X, "x", 0)
            append_all = world.store.append_all

            async def full(events: Any) -> list[int]:
                raise StoreError("the disk is full")

            world.store.append_all = full  # type: ignore[method-assign]
            world.receive(world.notify(1))
            await world.arrivals.all_kept()
            assert world.arrivals.rejected == {"not kept": 1} and not world.ledger.is_complete(X)
            world.store.append_all = append_all  # type: ignore[method-assign]
            right = world.notify(1)
            assert world.arrivals.take_kept(cast(Any, Sender()), X, 1, right.payload)
            await eventually(lambda: not world.arrivals.waiting)
            assert world.ledger.is_complete(X) and len(await world.store.find(source_of(world.alice.id), X, [1])) == 1

    during(scenario())


def test_messages_go_to_whom_they_are_for_and_to_nobody_before_the_peer_runs(tmp_path: Path) -> None:
    recovery = [Digest(()), Holdings((), (), False), Want(X, b"", 0, (), 0), Kept(X, b"", ())]

    async def scenario() -> None:
        async with world_in(tmp_path) as world:
            for message in (*recovery, Seek(1)):
                world.receive(message)
            assert world.recovered == recovery and world.host.passed_on == [Seek(1)]
            world.host.is_running = False
            for message in (*recovery, Seek(1), world.notify(1)):
                world.receive(message)
            assert world.recovered == recovery and world.host.passed_on == [Seek(1)] and not world.arrivals.rejected

    during(scenario())
