"""Two events under one number, signed by one publisher: seen, kept as evidence, told to others, and reported."""

from __future__ import annotations

import asyncio
from contextlib import AsyncExitStack
from pathlib import Path

import pytest

from grapevine.model.errors import PeerError
from grapevine.net import Node
from grapevine.net.equivocation import Equivocation
from grapevine.net.identity import Identity
from grapevine.net.messages import Evidence
from grapevine.net.stamp import FIRST, fingerprint, source_of, stamped
from grapevine.net.stored_event import StoredEvent
from grapevine.systems.vitis.peer.messages import Notify
from tests.net.hostile import Client, eventually
from tests.net.missed import TOPIC
from tests.net.nodes import during, opening, payloads


def sealed(who: Identity, sequence: int, payload: bytes, before: StoredEvent | None = None) -> StoredEvent:
    """An event as `who` publishes it, behind another."""
    link = FIRST if before is None else fingerprint(before.sequence, before.payload)
    content = stamped(1_000, payload, 0, link)
    return StoredEvent(who.id, TOPIC, sequence, 0, content, who.sign(TOPIC, sequence, content).seal)


def push(event: StoredEvent) -> Notify:
    return Notify(TOPIC, event.number, event.publisher.address, event.envelope)


def names(node: Node) -> list[str]:
    return [condition.name for condition in node.conditions()]


def test_two_nodes_that_got_different_events_under_one_number_both_come_to_know(tmp_path: Path) -> None:
    """Whichever came first was kept, and nobody noticed."""
    alice = Identity.open(tmp_path / "alice")
    one, other = sealed(alice, 1, b"one"), sealed(alice, 1, b"another")

    async def scenario() -> None:
        async with AsyncExitStack() as stack:
            a = await stack.enter_async_context(opening(data_dir=tmp_path / "a"))
            b = await stack.enter_async_context(opening())
            async with a.subscribe("x") as at_a, b.subscribe("x") as at_b:
                for node, said in ((a, one), (b, other)):
                    async with Client.dial(node.endpoint, tmp_path / "m") as mallory:
                        await mallory.enter()
                        mallory.send(push(said))
                        await eventually(lambda node=node: node.delivered == 1)
                assert (await payloads(at_a, 1), await payloads(at_b, 1)) == ([b"one"], [b"another"])
                await b.join("{}:{}".format(*a.endpoint))
                await eventually(lambda: "forked" in names(a) and "forked" in names(b), 30)
                assert a.stats()["forked"] == b.stats()["forked"] == 1
                await eventually(lambda: a.parts.ledger.digest(TOPIC) == b.parts.ledger.digest(TOPIC))
        async with opening(data_dir=tmp_path / "a") as again:  # the evidence outlives the session
            assert names(again) == ["forked"]

    during(scenario())


def test_who_has_another_event_than_the_next_one_names_sees_it(tmp_path: Path) -> None:
    """The two are never seen side by side: the publisher went on from the other one."""
    alice = Identity.open(tmp_path / "alice")
    one, other = sealed(alice, 1, b"one"), sealed(alice, 1, b"another")

    async def scenario() -> None:
        async with opening() as a, a.subscribe("x") as events, Client.dial(a.endpoint, tmp_path / "m") as mallory:
            await mallory.enter()
            mallory.send(push(one), push(sealed(alice, 2, b"two", other)))
            assert await payloads(events, 2) == [b"one", b"two"]
            await eventually(lambda: names(a) == ["forked"])
            (found,) = await a.parts.store.equivocations()
            assert (found.source, found.first, found.second) == (source_of(alice.id), 1, 2)
            found.check()

    during(scenario())


def test_evidence_that_proves_nothing_is_held_against_who_sends_it(tmp_path: Path) -> None:
    alice, bob = Identity.open(tmp_path / "alice"), Identity.open(tmp_path / "bob")
    one = sealed(alice, 1, b"one")
    two = sealed(alice, 2, b"two", one)
    source = source_of(alice.id)
    for first, second in ((one, one), (one, two), (one, sealed(bob, 1, b"another")), (one, sealed(alice, 3, b"3"))):
        with pytest.raises(PeerError):
            Equivocation(source, TOPIC, first.sequence, first.envelope, second.sequence, second.envelope).check()

    async def scenario() -> None:
        async with opening() as a, a.subscribe("x"), Client.dial(a.endpoint, tmp_path / "m") as mallory:
            await mallory.enter()
            mallory.send(Evidence(TOPIC, source, 1, one.envelope, 2, two.envelope))
            assert await mallory.ended()
            assert a.stats()["forked"] == 0 and a.stats()["rejected"]["garbage"] == 1

    during(scenario())


def test_a_copy_that_comes_again_after_a_long_time_is_no_evidence(tmp_path: Path) -> None:
    alice = Identity.open(tmp_path / "alice")
    one = sealed(alice, 1, b"one")

    async def scenario() -> None:
        async with opening() as a, a.subscribe("x") as events, Client.dial(a.endpoint, tmp_path / "m") as mallory:
            await mallory.enter()
            mallory.send(push(one))
            assert await payloads(events, 1) == [b"one"]
            a.parts.arrivals._seals._checked.clear()  # as after many others
            mallory.send(push(one))
            await asyncio.sleep(0.2)
            assert names(a) == [] and not await a.parts.store.equivocations()

    during(scenario())
