"""Peers that do not keep to the rules: they are counted and dropped, and others are served."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from contextlib import AsyncExitStack
from pathlib import Path

import msgspec
import pytest

from grapevine.net import wire
from grapevine.net.messages import Farewell, Introduce, Seek
from grapevine.systems.vitis.peer.messages import Notify
from tests.net.hostile import Client, eventually
from tests.net.hosts import during, hosting, note, pass_time, serves_others


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
