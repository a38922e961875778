"""Connections between peers that keep to the rules, and with some that do not: counted, and others are served."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Coroutine
from contextlib import AsyncExitStack, asynccontextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import msgspec
import pytest

from grapevine.model.errors import PeerError, UsageError
from grapevine.model.identity import PeerId
from grapevine.net import wire
from grapevine.net.config import NodeConfig
from grapevine.net.connection import Connection
from grapevine.net.connections import Connections
from grapevine.net.identity import Identity
from grapevine.net.live_system import live_facet, messages_of
from grapevine.net.messages import Farewell, Introduce, Seek
from grapevine.systems.contracts.peer import Address, Message
from grapevine.systems.vitis.peer.messages import Notify
from tests.net.hostile import Client, eventually

QUICK: dict[str, Any] = {"dial_s": 1.0, "retry_s": 0.1, "ban_s": 0.5, "slow_s": 0.1}


def note(number: int) -> Message:
    """A small message that says which it is."""
    return Notify(1, number, 2, b"")


@dataclass
class Host:
    """A node's connections, what came over them, and who was found to be unreachable."""

    connections: Connections
    endpoint: tuple[str, int]
    came: list[tuple[Address, Any]]
    lost: list[Address] = field(default_factory=list)

    @property
    def id(self) -> PeerId:
        return self.connections.identity.id

    @property
    def numbers(self) -> list[int]:
        return [message.sequence for _, message in self.came]


@asynccontextmanager
async def hosting(folder: Path, **changes: Any) -> AsyncIterator[Host]:
    came: list[tuple[Address, Any]] = []
    lost: list[Address] = []
    names = {key: changes.pop(key, default) for key, default in (("network", "grapevine"), ("system", "vitis"))}

    def receive(connection: Connection, message: Message) -> None:
        came.append((connection.address, message))

    connections = Connections(
        Identity.open(folder),
        NodeConfig(**(QUICK | changes)),
        **names,
        session=int.from_bytes(folder.name.encode()),
        messages=messages_of(live_facet("vitis")),
        receive=receive,
        unreachable=lost.append,
    )
    endpoint = await connections.listen("127.0.0.1", 0, None, 1)
    try:
        yield Host(connections, endpoint, came, lost)
    finally:
        await connections.close("the test ends")


def during(scenario: Coroutine[Any, Any, None]) -> None:
    asyncio.run(asyncio.wait_for(scenario, 30))


def pass_time(node: Host, peer: PeerId, seconds: float) -> None:
    """For so long nothing has come or gone between the two."""
    connection = node.connections.connection(peer.address)
    assert connection is not None
    connection.used -= seconds


async def serves_others(node: Host, folder: Path) -> None:
    """An honest peer is still served."""
    before = len(node.came)
    async with hosting(folder) as honest:
        await honest.connections.call(*node.endpoint)
        honest.connections.send(node.id.address, note(99))
        await eventually(lambda: node.came[before:] == [(honest.id.address, note(99))])


# Honest peers


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


# One that does not keep to the rules


def garbage(client: Client) -> None:
    client.write(b"\x00\x00\x00\x05hello")


def oversized(client: Client) -> None:
    client.write(b"\xff\xff\xff\xff")


def nothing_in_a_frame(client: Client) -> None:
    client.write(b"\x00\x00\x00\x00")


def before_hello(client: Client) -> None:
    client.send(note(1), client.hello(), note(2))


def hello_twice(client: Client) -> None:
    client.send(client.hello(), client.hello(), note(2))


def forged_contacts(client: Client) -> None:
    forged = msgspec.structs.replace(client.hello().contact, port=2, time_ms=2**60)
    client.send(client.hello(), *[Introduce((forged,))] * 3, note(2))


@pytest.mark.parametrize("crime", [garbage, oversized, nothing_in_a_frame, before_hello, hello_twice, forged_contacts])
def test_who_breaks_the_rules_is_counted_banned_and_heard_no_further(
    tmp_path: Path, crime: Callable[[Client], None]
) -> None:
    async def scenario() -> None:
        async with hosting(tmp_path / "a", ban_s=1.0) as a:
            async with Client.dial(a.endpoint, tmp_path / "m") as mallory:
                crime(mallory)
                assert await mallory.ended()
            assert a.came == [] and a.connections.counts["banned"] == 1
            assert a.connections.counts["rejected"] == a.connections.conduct.counts.total() in (1, 3)
            await serves_others(a, tmp_path / "honest")
            async with Client.dial(a.endpoint, tmp_path / "m") as mallory:
                mallory.send(mallory.hello())
                assert await mallory.ended() and a.connections.counts["refused"] == 1
            await eventually(
                lambda: not a.connections.conduct.is_banned(mallory.identity.id, a.connections.loop.time())
            )
            async with Client.dial(a.endpoint, tmp_path / "m") as mallory:
                await mallory.enter()
                mallory.send(note(3))
                await eventually(lambda: a.came[-1:] == [(mallory.identity.id.address, note(3))])
                assert a.lost in ([], [mallory.identity.id.address])

    during(scenario())


def test_who_says_nothing_is_dropped_in_time(tmp_path: Path) -> None:
    async def scenario() -> None:
        async with hosting(tmp_path / "a", dial_s=0.3) as a:
            async with Client.dial(a.endpoint, tmp_path / "m") as mallory:
                await serves_others(a, tmp_path / "honest")
                assert await mallory.ended() and a.connections.counts["refused"] == 1
            await eventually(lambda: not a.connections._all)

    during(scenario())


def test_who_does_not_even_speak_tls_is_dropped(tmp_path: Path) -> None:
    async def scenario() -> None:
        async with hosting(tmp_path / "a", dial_s=0.3) as a:
            for data in (b"", b"GET / HTTP/1.0\r\n\r\n", bytes(range(256))):
                reader, writer = await asyncio.open_connection(*a.endpoint)
                writer.write(data)
                try:
                    await asyncio.wait_for(reader.read(), 5)
                except ConnectionError:
                    pass
                finally:
                    writer.transport.abort()
            await serves_others(a, tmp_path / "honest")

    during(scenario())


def test_who_sends_too_much_is_slowed_down_and_loses_nothing_and_others_are_served(tmp_path: Path) -> None:
    async def scenario() -> None:
        async with hosting(tmp_path / "a", rate_messages=200) as a:
            async with Client.dial(a.endpoint, tmp_path / "m") as mallory:
                await mallory.enter()
                started = a.connections.loop.time()
                for first in range(1, 401, 100):
                    mallory.send(*map(note, range(first, first + 100)))
                    await eventually(lambda first=first: a.numbers == list(range(1, first + 100)))  # type: ignore[misc]
                assert a.connections.counts["throttled"] >= 1 and a.connections.loop.time() - started > 0.4
            await serves_others(a, tmp_path / "honest")

    during(scenario())


def test_who_does_not_read_is_dropped_and_takes_no_more_memory_than_its_queue(tmp_path: Path) -> None:
    async def scenario() -> None:
        async with hosting(tmp_path / "a", queue_bytes=65_536, rate_messages=100_000) as a:
            async with Client.dial(a.endpoint, tmp_path / "m") as mallory:
                await mallory.enter()
                address, most = mallory.identity.id.address, 0
                big = Notify(1, 1, 2, b"x" * 60_000)
                async with asyncio.timeout(10):
                    while a.connections.connection(address) is not None:
                        a.connections.send(address, big)
                        most = max(most, a.connections.unsent)
                        await asyncio.sleep(0)
                assert a.connections.conduct.counts["slow"] == 1 and a.connections.counts["dropped_slow"] > 1
                assert most < 65_536 + 2 * 60_000 + 1_000
            await serves_others(a, tmp_path / "honest")

    during(scenario())


def test_strangers_beyond_the_limit_are_refused(tmp_path: Path) -> None:
    async def scenario() -> None:
        async with hosting(tmp_path / "a", most_connections=2, dial_s=5.0) as a, AsyncExitStack() as stack:
            crowd = [
                await stack.enter_async_context(Client.dial(a.endpoint, tmp_path / f"m{number}")) for number in range(6)
            ]
            await eventually(lambda: a.connections.counts["refused"] == 2)
            assert sum(await asyncio.gather(*(client.ended(0.3) for client in crowd))) == 2
            assert len(a.connections._all) == 4

    during(scenario())


def test_a_farewell_without_end_is_no_way_to_stay(tmp_path: Path) -> None:
    async def scenario() -> None:
        async with hosting(tmp_path / "a", idle_s=10.0) as a, Client.dial(a.endpoint, tmp_path / "m") as mallory:
            await mallory.enter()
            mallory.send(Farewell("so long"), Seek(1))
            await eventually(lambda: a.connections.traffic.received["Seek"] == 1)
            pass_time(a, mallory.identity.id, 11.0)
            a.connections.sweep()
            assert await mallory.ended() and a.lost == []

    during(scenario())


def test_whatever_is_sought_only_what_is_known_is_told(tmp_path: Path) -> None:
    async def scenario() -> None:
        async with hosting(tmp_path / "a") as a, hosting(tmp_path / "b") as b:
            await b.connections.call(*a.endpoint)
            async with Client.dial(a.endpoint, tmp_path / "m") as mallory:
                await mallory.enter()
                mallory.send(Seek(-5), Seek(2**64 - 1), Seek(b.id.address))
                told = await mallory.hear(lambda message: isinstance(message, Introduce))
                assert [contact.id for contact in told.contacts] == [b.id]

    during(scenario())


def test_a_message_of_ours_that_no_frame_holds_is_counted_and_the_connection_stays(tmp_path: Path) -> None:
    async def scenario() -> None:
        async with hosting(tmp_path / "a") as a, hosting(tmp_path / "b") as b:
            await a.connections.call(*b.endpoint)
            a.connections.send(b.id.address, Notify(1, 1, 2, b"x" * wire.FRAME_LIMIT))
            a.connections.send(b.id.address, note(2))
            await eventually(lambda: b.numbers == [2])
            assert a.connections.counts["oversized"] == 1

    during(scenario())
