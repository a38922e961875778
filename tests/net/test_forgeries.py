"""What was forged, replayed or never asked for does not get in."""

from __future__ import annotations

from contextlib import AsyncExitStack
from pathlib import Path

import pytest

from grapevine.model.identity import PeerId
from grapevine.net.identity import Identity
from grapevine.net.messages import Digest, Holdings, Kept, Want
from grapevine.net.stamp import source_of
from grapevine.systems.contracts.peer import Message
from grapevine.systems.vitis.peer.messages import Notify
from tests.net.hostile import Client, envelope, eventually
from tests.net.missed import TOPIC
from tests.net.nodes import during, opening, payloads, silence


def forged(mallory: Identity, alice: Identity) -> list[Message]:
    """Events that nobody signed so."""
    right = envelope(alice, TOPIC, 1, b"right")
    other_topic = envelope(alice, TOPIC + 1, 1, b"elsewhere")
    return [
        Notify(TOPIC, 1, alice.id.address, right[:-1] + b"!"),
        Notify(TOPIC, 2, alice.id.address, right),
        Notify(TOPIC, 1, alice.id.address, other_topic),
        Notify(TOPIC, 1, alice.id.address, right[:96]),
        Notify(TOPIC, 1, alice.id.address, b""),
        Notify(TOPIC, 1, mallory.id.address, right),
        Notify(TOPIC, 1, alice.id.address, envelope(mallory, TOPIC, 1, b"mine")),
        Notify(-1, 1, alice.id.address, right),
        Notify(TOPIC, 0, alice.id.address, right),
        Notify(TOPIC, 2**64 - 1, alice.id.address, right),
    ]


@pytest.mark.parametrize("which", range(10))
def test_a_forged_event_is_counted_and_not_delivered(tmp_path: Path, which: int) -> None:
    async def scenario() -> None:
        alice = Identity.open(tmp_path / "alice")
        async with opening() as a, a.subscribe("x") as events, Client.dial(a.endpoint, tmp_path / "m") as mallory:
            await mallory.enter()
            mallory.send(forged(mallory.identity, alice)[which])
            await eventually(lambda: a.stats()["rejected"] == {"forged": 1})
            mallory.send(Notify(TOPIC, 1, alice.id.address, envelope(alice, TOPIC, 1, b"right")))
            assert await payloads(events, 1) == [b"right"] and a.delivered == 1

    during(scenario())


def test_who_goes_on_forging_is_banned() -> None:
    async def scenario() -> None:
        async with opening() as a, a.subscribe("x") as events:
            folder = a.parts.folder.path / "mallory"
            async with Client.dial(a.endpoint, folder) as mallory:
                await mallory.enter()
                mallory.send(*forged(mallory.identity, Identity.open(folder / "alice")))
                assert await mallory.ended()
            assert a.stats()["counts"]["banned"] == 1 and await silence(events, 0.1)

    during(scenario())


def test_a_replayed_event_is_delivered_once_also_after_a_restart(tmp_path: Path) -> None:
    alice = Identity.open(tmp_path / "alice")
    copy = Notify(TOPIC, 1, alice.id.address, envelope(alice, TOPIC, 1, b"once"))

    async def scenario() -> None:
        async with opening(data_dir=tmp_path / "a") as a, a.subscribe("x") as events:
            await a.subscribe_for_good("x")
            async with Client.dial(a.endpoint, tmp_path / "m") as mallory:
                await mallory.enter()
                mallory.send(copy, copy)
                assert await payloads(events, 1) == [b"once"]
                mallory.send(copy)
                assert await silence(events, 0.2) and a.delivered == 1
        async with AsyncExitStack() as stack:
            a = await stack.enter_async_context(opening(data_dir=tmp_path / "a"))
            events = await stack.enter_async_context(a.subscribe("x"))
            mallory = await stack.enter_async_context(Client.dial(a.endpoint, tmp_path / "m"))
            await mallory.enter()
            mallory.send(copy, Notify(TOPIC, 2, alice.id.address, envelope(alice, TOPIC, 2, b"next")))
            assert await payloads(events, 1) == [b"next"] and a.delivered == 1

    during(scenario())


def test_nobody_ages_the_stream_of_another_by_claiming_what_it_holds(tmp_path: Path) -> None:
    alice = Identity.open(tmp_path / "alice")
    source = source_of(alice.id)
    event = Notify(TOPIC, 1, alice.id.address, envelope(alice, TOPIC, 1, b"right"))
    everybody = [source_of(PeerId.of(b"%d" % number)) for number in range(999)]

    async def scenario() -> None:
        async with opening() as a, a.subscribe("x") as events, Client.dial(a.endpoint, tmp_path / "m") as mallory:
            await mallory.enter()
            mallory.send(Holdings(((TOPIC, source, 2**62, (), b""),), (TOPIC,), False))
            mallory.send(Holdings(tuple((TOPIC, publisher, 2**62, (), b"") for publisher in everybody), (), False))
            wanted = await mallory.hear(lambda message: isinstance(message, Want), timeout=10)
            assert (wanted.topic, wanted.source, wanted.after) == (TOPIC, source, 0)
            mallory.send(Kept(TOPIC, source, ()))
            mallory.send(event)
            assert await payloads(events, 1) == [b"right"]
            assert a.parts.ledger.is_complete(TOPIC) and len(a.parts.ledger.possessed(TOPIC)) == 1

    during(scenario())


def test_answers_that_nobody_asked_for_change_nothing(tmp_path: Path) -> None:
    alice = Identity.open(tmp_path / "alice")
    source = source_of(alice.id)

    async def scenario() -> None:
        async with AsyncExitStack() as stack:
            a = await stack.enter_async_context(opening(patience=1))
            events = await stack.enter_async_context(a.subscribe("x", ordered=False))
            mallory = await stack.enter_async_context(Client.dial(a.endpoint, tmp_path / "m"))
            await mallory.enter()
            mallory.send(Notify(TOPIC, 3, alice.id.address, envelope(alice, TOPIC, 3, b"3")))
            assert await payloads(events, 1) == [b"3"]
            mallory.send(*[Kept(TOPIC, source, ())] * 20, Kept(TOPIC + 1, b"", ((1, b""),)))
            mallory.send(Digest(((TOPIC, 0), (TOPIC + 1, 0))))
            await mallory.hear(lambda message: isinstance(message, Holdings))
            assert a.parts.ledger.missing(TOPIC, 1e18) == {source: [1, 2]} and a.stats()["given_up"] == 0

    during(scenario())


def test_an_answer_is_checked_like_any_event(tmp_path: Path) -> None:
    alice = Identity.open(tmp_path / "alice")
    source = source_of(alice.id)

    async def scenario() -> None:
        async with (
            opening() as a,
            a.subscribe("x", ordered=False) as events,
            Client.dial(a.endpoint, tmp_path / "m") as mallory,
        ):
            await mallory.enter()
            mallory.send(Holdings(((TOPIC, source, 2, (), b""),), (TOPIC,), True))
            await mallory.hear(lambda message: isinstance(message, Want), timeout=10)
            fake = envelope(mallory.identity, TOPIC, 1, b"fake")
            right = envelope(alice, TOPIC, 2, b"right")
            mallory.send(Kept(TOPIC, source, ((1, right), (2, right), (2, fake))))
            assert await payloads(events, 1) == [b"right"]
            await eventually(lambda: a.stats()["rejected"] == {"forged": 2})

    during(scenario())
