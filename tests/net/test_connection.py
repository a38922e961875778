"""One connection's life: nobody is heard before its hello, nobody makes us hold much, and every end is told once."""

from __future__ import annotations

import asyncio
from collections import Counter
from typing import Any

import pytest

from grapevine.model.errors import PeerError, UsageError
from grapevine.model.identity import PeerId
from grapevine.net import wire
from grapevine.net.config import NodeConfig
from grapevine.net.connection import Connection, State
from grapevine.net.live_system import live_facet, messages_of
from grapevine.net.messages import Farewell, Hello, Seek
from grapevine.net.traffic import Traffic
from grapevine.net.transport import Channel
from tests.net.hostile import contact_of, eventually
from tests.net.nodes import during

ALICE = contact_of("alice")
HELLO = Hello("net", "vitis", 1, ALICE)


class Line(Channel):
    """A channel whose other end is the test."""

    unsent = 0
    is_closing = False
    is_paused = False
    is_aborted = False

    def __init__(self) -> None:
        self.peer: PeerId = ALICE.id
        self.written: list[Any] = []
        self._decoder = wire.Decoder(messages_of(live_facet("vitis")))

    def write(self, data: bytes) -> None:
        self.written += self._decoder.feed(data)

    def pause_reading(self) -> None:
        self.is_paused = True

    def resume_reading(self) -> None:
        self.is_paused = False

    def close(self) -> None:
        self.is_closing = True

    def abort(self) -> None:
        self.is_closing = self.is_aborted = True


class Overseer:
    """Admits everybody, unless told otherwise, and notes what it is told."""

    def __init__(self) -> None:
        self.told: list[str] = []
        self.heard: list[Any] = []
        self.counts: Counter[str] = Counter()
        self.refuses_peer = self.refuses_hello = self.bans = False

    def hello(self) -> Hello:
        return HELLO

    def admit(self, connection: Connection, peer: PeerId) -> None:
        if self.refuses_peer:
            raise PeerError("not you")

    def check_hello(self, connection: Connection, hello: Hello) -> None:
        if self.refuses_hello:
            raise PeerError("not so")

    def on_open(self, connection: Connection) -> None:
        self.told.append("open")

    def on_message(self, connection: Connection, message: Any) -> None:
        self.heard.append(message)

    def on_refused(self, connection: Connection, error: PeerError) -> None:
        self.told.append(f"refused: {error}")

    def blame(self, connection: Connection, misconduct: str, points: int, error: PeerError) -> None:
        self.told.append(misconduct)
        if self.bans:
            connection.abort()

    def on_closed(self, connection: Connection) -> None:
        self.told.append("closed")

    def count(self, what: str) -> None:
        self.counts[what] += 1


class World:
    def __init__(self, **changes: Any) -> None:
        self.overseer, self.line, self.traffic = Overseer(), Line(), Traffic()
        settings: dict[str, Any] = {"dial_s": 5.0} | changes
        config = NodeConfig(**settings)
        self.connection = Connection(
            self.overseer, config, messages_of(live_facet("vitis")), self.traffic, outgoing=False
        )

    def hear(self, *messages: Any) -> None:
        self.connection.on_data(b"".join(map(wire.encode, messages)))

    def open(self) -> None:
        self.connection.on_channel_open(self.line)
        self.hear(HELLO)


def test_a_connection_greets_opens_and_closes() -> None:
    async def scenario() -> None:
        world = World()
        connection = world.connection
        states = [connection.state]
        assert connection.is_closing and not connection.send(Seek(1))
        connection.on_channel_open(world.line)
        states.append(connection.state)
        assert connection.id == ALICE.id and world.line.written == [HELLO]
        assert not connection.opened.done()
        world.hear(HELLO, Seek(1))
        states.append(connection.state)
        assert connection.hello == HELLO and world.overseer.heard == [Seek(1)]
        assert await connection.opened == ALICE.id
        connection.on_channel_closed()
        states.append(connection.state)
        assert states == [State.CONNECTING, State.GREETING, State.OPEN, State.CLOSED]
        assert world.overseer.told == ["open", "closed"]
        connection.close("late")
        connection.abort()
        assert not connection.send(Seek(2)) and connection.unsent == 0

    during(scenario())


def test_nobody_is_heard_before_its_hello() -> None:
    async def scenario() -> None:
        world = World()
        world.overseer.bans = True
        world.connection.on_channel_open(world.line)
        world.hear(Seek(1), HELLO, Seek(2))
        assert world.overseer.told == ["garbage"] and world.overseer.heard == [] and world.line.is_aborted
        world.connection.on_channel_closed()
        with pytest.raises(PeerError, match="closed before it opened"):
            await world.connection.opened

    during(scenario())


def test_a_second_hello_is_garbage_and_a_farewell_is_not() -> None:
    async def scenario() -> None:
        world = World()
        world.open()
        world.hear(Farewell("so long"))
        assert world.connection.has_farewell and world.overseer.told == ["open"]
        world.hear(HELLO)
        assert world.overseer.told == ["open", "garbage"]

    during(scenario())


@pytest.mark.parametrize(("who", "why"), [("refuses_peer", "not you"), ("refuses_hello", "not so")])
def test_who_is_refused_is_cut_off_and_whoever_waits_is_told_why(who: str, why: str) -> None:
    async def scenario() -> None:
        world = World()
        setattr(world.overseer, who, True)
        world.open()
        assert world.overseer.told[0] == f"refused: {why}" and world.line.is_aborted
        with pytest.raises(PeerError, match=why):
            await world.connection.opened
        assert world.connection.hello is None and (who == "refuses_hello" or world.line.written == [])

    during(scenario())


def test_who_has_not_proven_who_it_is_is_refused_without_an_id() -> None:
    async def scenario() -> None:
        world = World()
        world.connection.on_channel_refused(PeerError("no key"))
        world.connection.on_channel_closed()
        assert world.overseer.told == ["refused: no key", "closed"] and world.connection.id is None
        with pytest.raises(PeerError, match="no key"):
            await world.connection.opened

    during(scenario())


def test_who_says_no_hello_in_time_is_cut_off() -> None:
    async def scenario() -> None:
        world = World(dial_s=0.1)
        world.connection.on_channel_open(world.line)
        await eventually(lambda: world.line.is_aborted)
        assert world.overseer.told == ["refused: it did not say hello in time"]

    during(scenario())


def test_what_is_not_read_is_dropped_and_after_a_while_so_is_the_peer() -> None:
    async def scenario() -> None:
        world = World(queue_bytes=65_536, slow_s=0.1)
        world.open()
        world.line.unsent = 65_536
        assert world.connection.send(Seek(1))
        world.line.unsent = 65_537
        assert not world.connection.send(Seek(2)) and world.overseer.counts["dropped_slow"] == 1
        assert not world.line.is_closing
        await eventually(lambda: world.connection.send(Seek(3)) or world.line.is_aborted)
        assert world.overseer.told == ["open", "slow"] and Seek(3) not in world.line.written

    during(scenario())


def test_who_begins_to_read_again_is_forgiven(monkeypatch: pytest.MonkeyPatch) -> None:
    async def scenario() -> None:
        world = World(queue_bytes=65_536, slow_s=10.0)
        world.open()
        with monkeypatch.context() as patch:
            for seconds in (0, 6, 12, 18):
                patch.setattr(asyncio.get_running_loop(), "time", lambda now=seconds: float(now))
                world.line.unsent = 65_537
                assert not world.connection.send(Seek(1))
                world.line.unsent = 0
                assert world.connection.send(Seek(1))
        assert world.overseer.told == ["open"]

    during(scenario())


def test_who_sends_too_much_is_read_more_slowly_and_loses_nothing() -> None:
    async def scenario() -> None:
        world = World(rate_messages=100)
        world.open()
        world.hear(*map(Seek, range(110)))
        assert world.line.is_paused and len(world.overseer.heard) == 110 and world.overseer.counts["throttled"] == 1
        await eventually(lambda: not world.line.is_paused)

    during(scenario())


def test_a_message_that_no_frame_holds_is_our_own_mistake() -> None:
    async def scenario() -> None:
        world = World(frame_bytes=1_024, payload_bytes=100)
        world.open()
        with pytest.raises(UsageError, match="frames hold"):
            world.connection.send(Farewell("x" * 2_000))
        assert not world.line.is_closing

    during(scenario())


def test_everything_is_counted_both_ways() -> None:
    async def scenario() -> None:
        world = World()
        world.open()
        world.connection.close("done")
        assert world.line.written == [HELLO, Farewell("done")] and world.line.is_closing
        traffic = world.traffic
        assert traffic.sent == {"Hello": 1, "Farewell": 1} and traffic.received == {"Hello": 1}
        assert traffic.bytes_out == len(wire.encode(HELLO)) + len(wire.encode(Farewell("done")))
        assert traffic.bytes_in == len(wire.encode(HELLO))

    during(scenario())
