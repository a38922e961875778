"""The simulated network: cuts hold bytes back, long ones end channels, and the dead are found out."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine
from pathlib import Path
from typing import Any

import pytest

from grapevine.model.errors import PeerError
from grapevine.net.config import NodeConfig
from grapevine.net.identity import Identity
from grapevine.net.torture.loop import Process, VirtualLoop
from grapevine.net.torture.network import GIVE_UP_S, Network
from grapevine.net.torture.simulated_transport import transport_of
from tests.net.test_transport import User

THERE, BACK = ("10.0.0.1", "10.0.0.2"), ("10.0.0.2", "10.0.0.1")


class Pair:
    """Two hosts with an open channel between them."""

    def __init__(self, folder: Path) -> None:
        self.network = Network(1, lambda *parcel: None)
        self.processes = [Process("a"), Process("b")]
        self.identities = [Identity.open(folder / name) for name in "ab"]
        self.a, self.b = User(), User()

    async def dial(self) -> None:
        make_a, make_b = (
            transport_of(self.network, host, process) for host, process in zip(THERE, self.processes, strict=True)
        )
        if ("10.0.0.2", 7) not in self.network.listeners:
            await make_b(self.identities[1], NodeConfig()).listen("10.0.0.2", 7, lambda: self.b)
        await make_a(self.identities[0], NodeConfig()).dial("10.0.0.2", 7, self.a, self.identities[1].id)
        await asyncio.sleep(1)


def in_virtual_time(scenario: Callable[[], Coroutine[Any, Any, None]]) -> None:
    loop = VirtualLoop()
    try:
        loop.run_until_complete(scenario())
    finally:
        loop.close()
    assert not loop.errors


def test_what_is_written_during_a_short_cut_comes_after_it(tmp_path: Path) -> None:
    async def scenario() -> None:
        pair = Pair(tmp_path)
        await pair.dial()
        pair.network.cut([THERE, BACK])
        pair.a.open.write(b"1")
        pair.a.open.write(b"2")
        await asyncio.sleep(GIVE_UP_S / 2)
        assert pair.b.data == b"" and pair.a.open.unsent == 2
        pair.network.heal([THERE, BACK])
        await asyncio.sleep(GIVE_UP_S)
        assert pair.b.data == b"12" and pair.a.open.unsent == 0 and not pair.a.closed

    in_virtual_time(scenario)


def test_a_one_way_cut_ends_the_channel_at_whoever_hears_no_acknowledgement(tmp_path: Path) -> None:
    async def scenario() -> None:
        pair = Pair(tmp_path)
        await pair.dial()
        pair.network.cut([BACK])
        pair.a.open.write(b"1")
        await asyncio.sleep(GIVE_UP_S + 1)
        assert pair.b.data == b"1" and pair.a.closed and not pair.b.closed  # the other has not found out
        pair.network.heal([BACK])
        pair.b.open.write(b"2")
        await asyncio.sleep(1)
        assert pair.b.closed and pair.a.data == b""

    in_virtual_time(scenario)


@pytest.mark.parametrize("power", [False, True])
def test_a_process_that_dies_is_missed_at_once_and_a_machine_later(tmp_path: Path, power: bool) -> None:
    async def scenario() -> None:
        pair = Pair(tmp_path)
        await pair.dial()
        pair.processes[1].is_dead = True
        pair.network.on_crash("10.0.0.2", pair.processes[1], power=power)
        await asyncio.sleep(1)
        assert pair.a.closed == (not power)
        if power:
            pair.a.open.write(b"1")
        await asyncio.sleep(GIVE_UP_S + 1)
        assert pair.a.closed == 1 and not pair.b.closed and not pair.network.ends

    in_virtual_time(scenario)


def test_dialling_fails_where_nobody_listens_and_waits_where_the_way_is_cut(tmp_path: Path) -> None:
    async def scenario() -> None:
        pair = Pair(tmp_path)
        await pair.dial()
        pair.network.listeners.clear()
        make = transport_of(pair.network, "10.0.0.1", pair.processes[0])
        with pytest.raises(PeerError, match="nobody listens"):
            await make(pair.identities[0], NodeConfig()).dial("10.0.0.2", 7, User(), None)
        pair.network.cut([BACK])
        with pytest.raises(TimeoutError):
            await asyncio.wait_for(make(pair.identities[0], NodeConfig()).dial("10.0.0.2", 7, User(), None), 60)

    in_virtual_time(scenario)


def test_what_is_lost_comes_later_and_holds_up_what_was_written_after_it(tmp_path: Path) -> None:
    async def scenario() -> None:
        pair = Pair(tmp_path)
        await pair.dial()
        written = b"".join(bytes([number]) for number in range(60))
        pair.network.lose([THERE])
        delays = [pair.network.latency_s(THERE) for _ in range(200)]
        assert 20 < sum(delay > 0.2 for delay in delays) < 120 and max(delays) > 0.6, "time-outs, some of them doubled"
        for number in written:
            pair.a.open.write(bytes([number]))
        await asyncio.sleep(GIVE_UP_S)
        assert pair.b.data == written
        pair.network.lose_no_more([THERE])
        assert max(pair.network.latency_s(THERE) for _ in range(200)) < 1.0

    in_virtual_time(scenario)
