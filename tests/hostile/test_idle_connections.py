"""Connections that never prove who they are: they cost next to nothing, and honest newcomers are taken meanwhile."""

from __future__ import annotations

import asyncio
import contextlib
import gc
import socket
from pathlib import Path

import pytest

from tests.hostile.attackers import COUNTED, idle_sockets, resident_bytes, say
from tests.net.hosts import during, hosting, serves_others

MIB = 2**20
ONE, MANY = ["127.0.0.9"], [f"127.0.{number}.9" for number in range(1, 251)]
HALF_A_HELLO = bytes.fromhex("1603010200")  # the header of a ClientHello, whose body never comes


@pytest.mark.parametrize("said", [b"", HALF_A_HELLO])
@pytest.mark.parametrize("origins", [ONE, MANY])
def test_5_000_that_prove_nothing_cost_less_than_50_mb_and_an_honest_one_is_served(
    tmp_path: Path, origins: list[str], said: bytes
) -> None:
    async def scenario() -> None:
        async with hosting(tmp_path / "a", dial_s=5.0, **COUNTED) as a:
            await serves_others(a, tmp_path / "honest")  # what the first connection loads does not count
            gc.collect()
            before, most = resident_bytes(), 0
            with idle_sockets(a.endpoint, 5_000, origins) as sockets:
                for moment in range(20):
                    await asyncio.sleep(0.05)
                    most = max(most, resident_bytes())
                    if said and moment % 5 == 4:
                        speak(sockets, said)
                started = a.connections.loop.time()
                await serves_others(a, tmp_path / "honest", dial_s=5.0)
                served_s = a.connections.loop.time() - started
                most = max(most, resident_bytes())
            what = "half a hello" if said else "nothing"
            where = f"5,000 connections that say {what}, from {len(origins)} addresses"
            say(where, "memory, MB", round((most - before) / MIB, 1))
            say(where, "an honest newcomer is served after, s", round(served_s, 2))
            assert most - before < 50 * MIB

    during(scenario())


def speak(sockets: list[socket.socket], said: bytes) -> None:
    for one in sockets:
        with contextlib.suppress(OSError):  # it was closed
            one.send(said)


def test_who_comes_too_often_from_one_address_is_closed_at_once_and_others_are_not(tmp_path: Path) -> None:
    async def scenario() -> None:
        async with hosting(tmp_path / "a", handshakes_per_address=4, dial_s=5.0, **COUNTED) as a:
            with idle_sockets(a.endpoint, 20, ["127.0.0.9"]):
                await serves_others(a, tmp_path / "honest")
                a.connections.sweep()
                assert a.connections.counts["turned_away"] == 16

    during(scenario())


def test_a_crowd_of_honest_ones_at_once_loses_nobody(tmp_path: Path) -> None:
    async def scenario() -> None:
        async with hosting(tmp_path / "a", most_handshakes=2, handshake_grace_s=20.0, dial_s=20.0) as a:

            async def come(number: int) -> None:
                async with hosting(tmp_path / f"h{number}", dial_s=20.0) as honest:
                    await honest.connections.call(*a.endpoint)

            await asyncio.gather(*map(come, range(20)))
            assert a.connections.counts["refused"] == 0

    during(scenario())
