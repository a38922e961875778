"""A node that is sent anything: nothing gets past it but what its rules allow, and it still delivers afterwards.

Frames go through the same code as those from sockets (`Connection.on_data`), with a channel that leads nowhere.
"""

from __future__ import annotations

import asyncio
from collections import Counter
from contextlib import AsyncExitStack
from pathlib import Path
from random import Random
from types import NoneType, UnionType
from typing import Any, Union, get_args, get_origin, get_type_hints

import pytest

from grapevine.model.identity import PeerId
from grapevine.net import wire
from grapevine.net.connection import Connection, State
from grapevine.net.identity import Identity
from grapevine.net.messages import Farewell, Hello
from grapevine.net.node import Node
from grapevine.net.transport import Channel
from tests.net.hostile import envelope
from tests.net.nodes import ROUNDS, during, next_event, opening

_NUMBERS = [0, 1, 2, 3, 500, -1, 2**31, 2**62, 2**63 - 1, 2**63, 2**64 - 1, -(2**63)]
_FLOATS = [0.0, 1.0, -1.0, 1e308, float("inf"), float("nan"), 1e-308]


class Nowhere(Channel):
    """Takes what is written to it, until somebody closes it."""

    unsent = 0
    is_closing = False

    def __init__(self, peer: PeerId) -> None:
        self.peer = peer

    def write(self, data: bytes) -> None:
        assert not self.is_closing

    def close(self) -> None:
        self.is_closing = True

    abort = close

    def pause_reading(self) -> None:
        return

    resume_reading = pause_reading


class Fuzzer:
    """Draws messages of every kind of a system, and what bad wires and bad peers make of them."""

    def __init__(self, node: Node, topic: str, identity: Identity, seed: int) -> None:
        self.node, self.random, self.identity = node, Random(seed), identity
        self.topic = node.parts.system.topic(topic)
        self.kinds = [kind for kind in get_args(node.parts.system.messages) if kind is not Farewell]
        self.hints = {kind: get_type_hints(kind) for kind in self.kinds}
        self.numbers = [*_NUMBERS, self.topic, self.topic, node.id.address, identity.id.address]
        self.bytes = [b"", b"x", identity.id.full, node.id.full, bytes(96), bytes(104), bytes(400)]
        self.bytes += [envelope(identity, self.topic, sequence, b"fuzz") for sequence in (1, 2, 3, 2**40)]
        self.connections = 0

    def connection(self) -> Connection:
        """A new peer, that has said hello."""
        self.connections += 1
        all_of_them = self.node.connections
        connection = all_of_them._new(outgoing=False)
        connection.on_channel_open(Nowhere(PeerId.of(b"fuzz %d" % self.connections)))
        connection.hello = Hello("", "", 0, self.identity.contact("127.0.0.1", 1, 1))
        connection.state = State.OPEN
        all_of_them._open[connection.address] = connection
        self.numbers[-1] = connection.address
        return connection

    def value(self, hint: Any, depth: int = 0) -> Any:
        """Something of this type, more often than not something that means something."""
        random = self.random
        if hint is int:
            return random.choice(self.numbers) if random.random() < 0.8 else random.randrange(-(2**63), 2**64)
        if hint is float:
            return random.choice(_FLOATS) if random.random() < 0.5 else random.uniform(0, 100)
        if hint is bytes:
            return random.choice(self.bytes) if random.random() < 0.8 else random.randbytes(random.randrange(200))
        if hint is bool:
            return random.random() < 0.5
        if hint is str:
            return random.choice(["", "127.0.0.1", "::1", "x" * 100, "\N{GRAPES}"])
        if hint is NoneType:
            return None
        if get_origin(hint) in (Union, UnionType):
            return self.value(random.choice(get_args(hint)), depth)
        if get_origin(hint) is tuple:
            parts = get_args(hint)
            if parts[1:] == (...,):
                return tuple(self.value(parts[0], depth + 1) for _ in range(random.randrange(5 - min(depth, 3))))
            return tuple(self.value(part, depth + 1) for part in parts)
        hints = get_type_hints(hint)
        return hint(*(self.value(hints[name], depth + 1) for name in hint.__struct_fields__))

    def frame(self) -> bytes:
        """A frame that is right, or not quite."""
        kind = self.random.choice(self.kinds)
        frame = wire.encode(kind(*(self.value(self.hints[kind][name]) for name in kind.__struct_fields__)))
        return frame if self.random.random() < 0.7 else self._mutated(frame)

    def _mutated(self, frame: bytes) -> bytes:
        random, data = self.random, bytearray(frame)
        for _ in range(random.randrange(1, 4)):
            at = random.randrange(len(data))
            how = random.randrange(5)
            if how == 0:
                data[at] ^= 1 << random.randrange(8)
            elif how == 1:
                del data[at : at + random.randrange(1, 8)]
            elif how == 2:
                data[at:at] = random.randbytes(random.randrange(1, 8))
            elif how == 3:
                data[at:at] = data[at // 2 : at]
            else:
                data[at] = random.choice([0x00, 0x7F, 0x80, 0x90, 0xC0, 0xC1, 0xC4, 0xCF, 0xD9, 0xDC, 0xDD, 0xFF])
            data = data or bytearray(b"\0")
        if random.random() < 0.8 and len(data) > 4:  # the length is right: it is the content that is not
            data[:4] = (len(data) - 4).to_bytes(4, "big")
        return bytes(data)

    async def run(self, frames: int) -> Counter[str]:
        """Feed so many frames, over as many connections as that takes.

        None lasts for longer than 200 frames: one that announces a megabyte would swallow all that follow.
        """
        connection, counts = self.connection(), self.node.connections.counts
        for number in range(frames):
            if connection.is_closing or number % 200 == 199:
                connection.on_channel_closed()
                connection = self.connection()
            connection.on_data(self.frame())
            if number % 50 == 0:
                await asyncio.sleep(0)
        connection.on_channel_closed()
        return counts


async def survives(system: str, frames: int, folder: Path, seed: int) -> None:
    parameters = {"stagger_s": 0.2, "timeout_s": 0.5, "ping_s": 1.0} if system == "rappel" else ROUNDS
    rates: dict[str, Any] = {"rate_messages": 10**9, "rate_bytes": 10**12}
    async with AsyncExitStack() as stack:
        node = await stack.enter_async_context(opening(system=system, parameters=parameters, **rates))
        topic = f"{node.id}/x" if system == "rappel" else "x"
        events = await stack.enter_async_context(node.subscribe(topic, size=10, policy="drop-oldest"))
        await node.publish(topic, b"here")
        fuzzer = Fuzzer(node, topic, Identity.open(folder), seed)
        counts = await fuzzer.run(frames)
        assert counts["rejected"] > frames / 100 and counts["banned"] > frames / 1_000
        assert node.stats()["failures"] == {}
        assert not any(task.done() for task in node.parts.tasks)
        held = node.parts.ledger.missing(fuzzer.topic, 1e18)
        assert sum(map(len, held.values())) <= 20 * node.config.gap_limit
        assert len(node.connections.contacts._known) <= node.config.contacts
        events.close()
        other = await stack.enter_async_context(opening(node, system=system, parameters=parameters))
        received = await stack.enter_async_context(other.subscribe(topic))
        await other.ready(topic, timeout=30)
        await node.publish(topic, b"still here")
        async with asyncio.timeout(30):
            while (await next_event(received)).payload != b"still here":
                pass


@pytest.mark.parametrize("system", ["vitis", "rappel"])
def test_ten_thousand_frames_of_anything_do_no_harm(tmp_path: Path, system: str) -> None:
    during(survives(system, 5_000, tmp_path, seed=1))


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(2, 7))
@pytest.mark.parametrize("system", ["vitis", "rappel"])
def test_a_million_frames_of_anything_do_no_harm(tmp_path: Path, system: str, seed: int) -> None:
    during(survives(system, 100_000, tmp_path, seed), timeout=1_200)


def test_the_fuzzer_reaches_every_kind_of_message(tmp_path: Path) -> None:
    async def scenario() -> None:
        async with opening(rate_messages=10**9) as node:
            fuzzer = Fuzzer(node, "x", Identity.open(tmp_path), seed=1)
            await fuzzer.run(3_000)
            assert set(node.connections.traffic.received) == {kind.__name__ for kind in fuzzer.kinds}

    during(scenario())
