"""Connections between peers that keep to the rules."""

from __future__ import annotations

import asyncio
from contextlib import AsyncExitStack, suppress
from pathlib import Path
from typing import Any

import pytest

from grapevine.model.errors import PeerError, UsageError
from grapevine.net import wire
from grapevine.net.config import NodeConfig
from grapevine.net.connections import Connections
from grapevine.net.identity import Identity
from grapevine.net.live_system import live_facet, messages_of
from tests.net.hostile import Client, eventually
from tests.net.hosts import QUICK, during, hosting, note, pass_time, serves_others


def test_messages_go_both_ways_over_one_connection_and_in_order(tmp_path: Path) -> None:
    async def scenario() -> None:
        async with hosting(tmp_path / "a") as a, hosting(tmp_path / "b") as b:
            assert await a.connections.call(*b.endpoint) == b.id
            for number in range(1, 101):
                a.connections.send(b.id.address, note(number))
                b.connections.send(a.id.address, note(number))
            await eventually(lambda: a.numbers == b.numbers == list(range(1, 101)))
            assert a.connections.open_connections == b.connections.open_connections == 1
            assert a.connections.traffic.sent["Notify"] == b.connections.traffic.received["Notify"] == 100

    during(scenario())


@pytest.mark.parametrize("attempt", range(3))
def test_two_that_dial_each_other_at_once_end_with_one_connection(tmp_path: Path, attempt: int) -> None:
    async def scenario() -> None:
        async with hosting(tmp_path / f"a{attempt}") as a, hosting(tmp_path / f"b{attempt}") as b:
            await asyncio.gather(a.connections.call(*b.endpoint), b.connections.call(*a.endpoint))
            await eventually(lambda: len(a.connections._all) == len(b.connections._all) == 1)
            for number in range(1, 11):
                a.connections.send(b.id.address, note(number))
                b.connections.send(a.id.address, note(number))
            await eventually(lambda: a.numbers == b.numbers == list(range(1, 11)))
            assert a.lost == b.lost == []
            assert a.connections.open_connections == b.connections.open_connections == 1

    during(scenario())


def test_a_peer_is_dialled_by_its_address_when_somebody_has_named_it(tmp_path: Path) -> None:
    async def scenario() -> None:
        async with hosting(tmp_path / "a") as a, hosting(tmp_path / "b") as b, hosting(tmp_path / "c") as c:
            await a.connections.call(*b.endpoint)
            await c.connections.call(*b.endpoint)
            a.connections.send(c.id.address, note(1))  # a has to ask b where c is
            await eventually(lambda: c.came == [(a.id.address, note(1))])

    during(scenario())


def test_nobody_knows_a_stranger_and_that_is_said_once(tmp_path: Path) -> None:
    async def scenario() -> None:
        async with hosting(tmp_path / "a") as a:
            for number in range(100):
                a.connections.send(12345, note(number))
            await eventually(lambda: a.lost == [12345])
            assert a.connections.counts["dropped_pending"] == 100 - 64
            assert a.connections.counts["dropped_unreachable"] == 64 and a.connections.unsent == 0

    during(scenario())


@pytest.mark.parametrize("other", [{"network": "elsewhere"}, {"system": "rappel"}])
def test_another_network_or_system_is_refused_and_told_why(tmp_path: Path, other: dict[str, str]) -> None:
    async def scenario() -> None:
        async with hosting(tmp_path / "a") as a, hosting(tmp_path / "b", **other) as b:
            with pytest.raises(PeerError):
                await b.connections.call(*a.endpoint)
            await eventually(lambda: a.connections.counts["refused"] == 1 or b.connections.counts["refused"] == 1)
            assert a.connections.open_connections == b.connections.open_connections == 0
            await serves_others(a, tmp_path / "c")

    during(scenario())


def test_who_is_found_under_the_endpoint_of_another_is_not_taken_for_it(tmp_path: Path) -> None:
    async def scenario() -> None:
        async with hosting(tmp_path / "a") as a, hosting(tmp_path / "b") as b:
            carol = Identity.open(tmp_path / "carol")
            a.connections.contacts.learn(carol.contact(*b.endpoint, 5))
            a.connections.send(carol.id.address, note(1))
            await eventually(lambda: a.lost == [carol.id.address])
            assert b.came == [] and a.connections.open_connections == 0

    during(scenario())


def test_nobody_says_hello_with_the_contact_of_another(tmp_path: Path) -> None:
    async def scenario() -> None:
        async with hosting(tmp_path / "a") as a, Client.dial(a.endpoint, tmp_path / "m") as mallory:
            victim = Identity.open(tmp_path / "victim").contact("127.0.0.1", 1, 5)
            mallory.send(mallory.hello(contact=victim))
            assert await mallory.ended() and a.connections.counts["refused"] == 1

    during(scenario())


async def mute(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    """Takes a connection and says nothing."""
    with suppress(ConnectionError):
        await reader.read()
    writer.transport.abort()


@pytest.mark.parametrize("speaks_tls", [False, True])
def test_who_is_dialled_and_says_nothing_is_given_up_in_time_and_leaves_nothing_behind(
    tmp_path: Path, speaks_tls: bool
) -> None:
    async def scenario() -> None:
        context = Identity.open(tmp_path / "m").server_context() if speaks_tls else None
        server = await asyncio.start_server(mute, "127.0.0.1", 0, ssl=context)
        async with server, hosting(tmp_path / "a", dial_s=0.3) as a:
            with pytest.raises(PeerError, match=r"did not answer within 0.3 s|did not say hello in time"):
                await a.connections.call(*server.sockets[0].getsockname()[:2])
            await eventually(lambda: not a.connections._all)
            assert a.connections.open_connections == 0
            await serves_others(a, tmp_path / "honest")

    during(scenario())


def test_who_goes_in_the_middle_of_a_handshake_a_hello_or_a_frame_takes_no_place(tmp_path: Path) -> None:
    async def scenario() -> None:
        async with hosting(tmp_path / "a", dial_s=0.3) as a:
            for half in (b"\x16", b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03" + bytes(32)):  # of a ClientHello
                _, writer = await asyncio.open_connection(*a.endpoint)
                writer.write(half)
                await writer.drain()
                writer.transport.abort()
            for sent in (b"", b"\x00\x00", None):
                async with Client.dial(a.endpoint, tmp_path / "m") as mallory:
                    hello = wire.encode(mallory.hello())
                    mallory.write(hello[:-1] if sent is None else sent)
                    await mallory.drain()
            await eventually(lambda: not a.connections._all)
            assert a.came == [] and a.lost == [] and not a.connections.conduct.counts
            await serves_others(a, tmp_path / "honest")

    during(scenario())


def test_a_node_does_not_connect_to_itself(tmp_path: Path) -> None:
    async def scenario() -> None:
        async with hosting(tmp_path / "a") as a:
            with pytest.raises(PeerError):
                await a.connections.call(*a.endpoint)
            await eventually(lambda: not a.connections._all)

    during(scenario())


def test_an_idle_connection_is_closed_with_a_farewell_and_nobody_is_reported_lost(tmp_path: Path) -> None:
    async def scenario() -> None:
        async with hosting(tmp_path / "a", idle_s=10.0) as a, hosting(tmp_path / "b") as b:
            await a.connections.call(*b.endpoint)
            a.connections.sweep()
            assert a.connections.open_connections == 1
            pass_time(a, b.id, 11.0)
            a.connections.sweep()
            await eventually(lambda: not a.connections._all and not b.connections._all)
            assert a.lost == b.lost == [] and b.connections.traffic.received["Farewell"] == 1
            b.connections.send(a.id.address, note(1))  # it is dialled again when there is something to say
            await eventually(lambda: a.numbers == [1])

    during(scenario())


def test_a_link_of_the_overlay_is_not_idle(tmp_path: Path) -> None:
    async def scenario() -> None:
        async with hosting(tmp_path / "a", idle_s=10.0) as a, hosting(tmp_path / "b") as b:
            await a.connections.call(*b.endpoint)
            a.connections.pinned.add(b.id.address)
            pass_time(a, b.id, 11.0)
            a.connections.sweep()
            found = a.connections.connection(b.id.address)
            assert found is not None and not found.is_closing

    during(scenario())


def test_a_crash_is_reported(tmp_path: Path) -> None:
    async def scenario() -> None:
        async with hosting(tmp_path / "a") as a, hosting(tmp_path / "b") as b:
            await a.connections.call(*b.endpoint)
            found = b.connections.connection(a.id.address)
            assert found is not None
            found.abort()
            await eventually(lambda: a.lost == [b.id.address])

    during(scenario())


def test_a_peer_that_returns_is_found_again_though_it_was_sent_to_all_the_time(tmp_path: Path) -> None:
    async def scenario() -> None:
        async with hosting(tmp_path / "a", retry_s=0.3) as a:
            async with hosting(tmp_path / "b") as b:
                await a.connections.call(*b.endpoint)
                b_id, endpoint = b.id, b.endpoint
            a.connections.send(b_id.address, note(0))
            await eventually(lambda: b_id.address in a.lost)
            connections = Connections(
                Identity.open(tmp_path / "b"),
                NodeConfig(**QUICK),
                network="grapevine",
                system="vitis",
                session=2,
                messages=messages_of(live_facet("vitis")),
                receive=lambda connection, message: received.append(message),
                unreachable=lambda address: None,
            )
            received: list[Any] = []
            await connections.listen(*endpoint, None, 2)

            def came() -> bool:
                a.connections.send(b_id.address, note(1))
                return bool(received)

            await eventually(came)
            await connections.close("done")

    during(scenario())


def test_a_bootstrap_node_that_is_known_by_name_is_known_to_be_connected(tmp_path: Path) -> None:
    async def scenario() -> None:
        async with hosting(tmp_path / "a") as a, hosting(tmp_path / "b") as b:
            await a.connections.call("localhost", b.endpoint[1])
            assert a.connections.is_connected_to("localhost", b.endpoint[1]) and a.connections.is_connected_to(
                *b.endpoint
            )
            assert not a.connections.is_connected_to("localhost", 1)

    during(scenario())


def test_a_full_node_makes_room_by_closing_what_is_idle_but_not_its_links(tmp_path: Path) -> None:
    async def scenario() -> None:
        async with AsyncExitStack() as stack:
            a = await stack.enter_async_context(hosting(tmp_path / "a", most_connections=2))
            b, c, d, e = [await stack.enter_async_context(hosting(tmp_path / name)) for name in "bcde"]
            await b.connections.call(*a.endpoint)
            await c.connections.call(*a.endpoint)
            a.connections.pinned.add(b.id.address)
            await d.connections.call(*a.endpoint)
            await eventually(lambda: set(a.connections.connected) == {b.id.address, d.id.address})
            assert c.lost == []
            a.connections.pinned.add(d.id.address)
            with suppress(PeerError):  # it may have heard hello before it was refused
                await e.connections.call(*a.endpoint)
            await eventually(lambda: e.connections.open_connections == 0)
            assert set(a.connections.connected) == {b.id.address, d.id.address} and a.connections.counts["refused"] == 1

    during(scenario())


@pytest.mark.parametrize("given", [{"host": "0.0.0.0"}, {"announced": "example.org"}, {"announced": "0.0.0.0"}])
def test_an_address_at_which_nobody_is_found_is_refused_when_the_node_opens(
    tmp_path: Path, given: dict[str, str]
) -> None:
    async def scenario() -> None:
        async with hosting(tmp_path / "a") as a:
            with pytest.raises(UsageError, match="announce"):
                await a.connections.listen(given.get("host", "127.0.0.1"), 0, given.get("announced"), 1)

    during(scenario())
