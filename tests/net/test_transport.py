"""What every transport promises (`grapevine.net.transport`), held against each of them."""

from __future__ import annotations

import asyncio
import tracemalloc
from asyncio import sslproto
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from grapevine.model.errors import PeerError, UsageError
from grapevine.model.identity import key_from
from grapevine.net import tls_transport
from grapevine.net.config import NodeConfig
from grapevine.net.identity import Identity
from grapevine.net.memory_transport import MemoryNetwork
from grapevine.net.tls_transport import TlsTransport
from grapevine.net.torture.loop import Process
from grapevine.net.torture.network import Network
from grapevine.net.torture.simulated_transport import transport_of
from grapevine.net.transport import Channel, ChannelUser, Endpoint, MakeTransport, Transport
from tests.net.hostile import eventually
from tests.net.nodes import during

CHUNK = b"x" * 65_536


class Simulated:
    """Transports of one simulated network, in which nothing goes wrong; it is made by the first, inside the loop."""

    network: Network | None = None

    def __call__(self, identity: Identity, config: NodeConfig) -> Transport:
        self.network = self.network or Network(1, lambda *parcel: None)
        return transport_of(self.network, "127.0.0.1", Process("a node"))(identity, config)


@pytest.fixture(params=["tls", "memory", "simulated"])
def make(request: pytest.FixtureRequest) -> MakeTransport:
    kinds: dict[str, MakeTransport] = {
        "tls": TlsTransport,
        "memory": MemoryNetwork().transport,
        "simulated": Simulated(),
    }
    return kinds[request.param]


class User(ChannelUser):
    """Notes what it is told, and that it is told in the promised order."""

    def __init__(self) -> None:
        self.channel: Channel | None = None
        self.refused: PeerError | None = None
        self.data = bytearray()
        self.closed = 0

    @property
    def open(self) -> Channel:
        assert self.channel is not None
        return self.channel

    def on_channel_open(self, channel: Channel) -> None:
        assert self.channel is None and self.refused is None and not self.closed
        self.channel = channel

    def on_channel_refused(self, error: PeerError) -> None:
        assert self.channel is None and self.refused is None and not self.closed
        self.refused = error

    def on_data(self, data: bytes) -> None:
        assert self.channel is not None and not self.closed and data
        self.data += data

    def on_channel_closed(self) -> None:
        assert (self.channel is None) != (self.refused is None)
        self.closed += 1


@dataclass
class End:
    """A transport that listens, and whoever came."""

    identity: Identity
    transport: Transport
    endpoint: Endpoint = ("", 0)
    came: list[User] = field(default_factory=list)

    def accept(self) -> User:
        self.came.append(User())
        return self.came[-1]


@asynccontextmanager
async def listening(make: MakeTransport, folder: Path) -> AsyncIterator[End]:
    identity = Identity.open(folder)
    end = End(identity, make(identity, NodeConfig(dial_s=2.0)))
    listener = await end.transport.listen("127.0.0.1", 0, end.accept)
    end.endpoint = listener.endpoint
    try:
        yield end
    finally:
        listener.close()
        for user in end.came:
            if user.channel is not None:
                user.channel.abort()
        await eventually(lambda: all(user.closed for user in end.came if user.channel is not None))


@asynccontextmanager
async def joined(make: MakeTransport, folder: Path) -> AsyncIterator[tuple[User, User]]:
    """The two ends of an open channel: who dialled, who was dialled."""
    async with listening(make, folder / "b") as b:
        alice, user = Identity.open(folder / "a"), User()
        await make(alice, NodeConfig(dial_s=2.0)).dial(*b.endpoint, user, b.identity.id)
        await eventually(lambda: b.came and b.came[0].channel)
        assert (user.open.peer, b.came[0].open.peer) == (b.identity.id, alice.id)
        yield user, b.came[0]


def test_bytes_go_both_ways_whole_and_in_order(make: MakeTransport, tmp_path: Path) -> None:
    sent = b"".join(b"%d " % number for number in range(50_000))

    async def scenario() -> None:
        async with joined(make, tmp_path) as (a, b):
            for at in range(0, len(sent), 7_001):
                a.open.write(sent[at : at + 7_001])
                b.open.write(sent[at : at + 7_001])
            await eventually(lambda: a.data == b.data == sent)
            assert a.open.unsent == b.open.unsent == 0

    during(scenario())


def test_a_dial_of_nobody_fails_and_the_user_is_told_nothing_else(make: MakeTransport, tmp_path: Path) -> None:
    async def scenario() -> None:
        async with listening(make, tmp_path / "b") as b:
            gone = b.endpoint
        user = User()
        with pytest.raises(PeerError, match="cannot be reached"):
            await make(Identity.open(tmp_path / "a"), NodeConfig(dial_s=2.0)).dial(*gone, user, None)
        assert (user.channel, user.refused, user.closed) == (None, None, 0)

    during(scenario())


def test_a_host_that_is_none_is_nobody(make: MakeTransport, tmp_path: Path) -> None:
    async def scenario() -> None:
        transport = make(Identity.open(tmp_path), NodeConfig(dial_s=2.0))
        for host in ("nowhere.invalid", "x" * 300):
            with pytest.raises(PeerError, match="cannot be reached"):
                await transport.dial(host, 1, User(), None)

    during(scenario())


def test_who_is_not_the_expected_peer_is_refused_and_no_byte_of_it_is_heard(
    make: MakeTransport, tmp_path: Path
) -> None:
    async def scenario() -> None:
        async with listening(make, tmp_path / "b") as b:
            victim, user = Identity.open(tmp_path / "victim"), User()
            await make(Identity.open(tmp_path / "a"), NodeConfig(dial_s=2.0)).dial(*b.endpoint, user, victim.id)
            for came in b.came:
                if came.channel is not None:
                    came.channel.write(b"trust me")
            await eventually(lambda: user.closed)
            assert user.channel is None and str(victim.id) in str(user.refused) and not user.data

    during(scenario())


def test_who_says_that_it_is_another_is_known_by_the_key_that_it_holds(make: MakeTransport, tmp_path: Path) -> None:
    async def scenario() -> None:
        victim, mallory = Identity.open(tmp_path / "victim"), Identity.open(tmp_path / "m")
        real = mallory.id
        mallory.id = victim.id
        async with listening(make, tmp_path / "b") as b:
            user = User()
            await make(mallory, NodeConfig(dial_s=2.0)).dial(*b.endpoint, user, b.identity.id)
            await eventually(lambda: b.came and b.came[0].channel)
            assert b.came[0].open.peer == real
            user.open.abort()

    during(scenario())


def test_a_signature_by_another_key_proves_nothing(tmp_path: Path) -> None:
    """TLS has this from OpenSSL (test_identity); the transport in memory has it from `proven`."""

    class Thief(Identity):
        def prove(self, challenge: bytes) -> tuple[bytes, bytes]:
            key, _ = victim.prove(b"another challenge, heard before")
            return key, super().prove(challenge)[1]

    victim = Identity.open(tmp_path / "victim")
    thief = Thief(key_from("thief"), tmp_path)

    async def scenario() -> None:
        network = MemoryNetwork()
        async with listening(network.transport, tmp_path / "b") as b:
            await network.transport(thief, NodeConfig(dial_s=2.0)).dial(*b.endpoint, User(), None)
            await eventually(lambda: b.came[0].refused)
            assert b.came[0].channel is None and "does not hold" in str(b.came[0].refused)

    during(scenario())


def close(channel: Channel) -> None:
    channel.close()


def abort(channel: Channel) -> None:
    channel.abort()


@pytest.mark.parametrize("end", [close, abort])
@pytest.mark.parametrize("which", [0, 1])
def test_closing_is_told_to_both_ends_once(
    make: MakeTransport, tmp_path: Path, end: Callable[[Channel], None], which: int
) -> None:
    async def scenario() -> None:
        async with joined(make, tmp_path) as ends:
            end(ends[which].open)
            assert ends[which].open.is_closing and not ends[which].closed
            await eventually(lambda: ends[0].closed and ends[1].closed)
            for user in ends:
                assert user.open.is_closing
                for late in (close, abort, lambda channel: channel.write(b"late")):
                    late(user.open)
            await asyncio.sleep(0)
            assert ends[0].closed == ends[1].closed == 1 and not ends[0].data and not ends[1].data

    during(scenario())


def test_what_was_written_before_closing_is_read(make: MakeTransport, tmp_path: Path) -> None:
    async def scenario() -> None:
        async with joined(make, tmp_path) as (a, b):
            for _ in range(20):
                a.open.write(CHUNK)
            a.open.close()
            await eventually(lambda: b.closed)
            assert len(b.data) == 20 * len(CHUNK)

    during(scenario())


def test_what_the_other_end_does_not_read_waits_here_and_is_counted(make: MakeTransport, tmp_path: Path) -> None:
    async def scenario() -> None:
        async with joined(make, tmp_path) as (a, b):
            b.open.pause_reading()
            written, before = 0, -1
            while a.open.unsent < 1 << 20:  # a system's sockets take some of it before anything waits
                a.open.write(CHUNK)
                written += len(CHUNK)
                assert written < 1 << 28, "whatever is written disappears"
                if a.open.unsent == before:
                    await asyncio.sleep(0)
                before = a.open.unsent
            assert a.open.unsent <= written
            b.open.resume_reading()
            await eventually(lambda: len(b.data) == written and a.open.unsent == 0)

    during(scenario())


def test_who_is_cut_off_while_it_does_not_read_leaves_nothing_behind(make: MakeTransport, tmp_path: Path) -> None:
    async def scenario() -> None:
        async with joined(make, tmp_path) as (a, b):
            b.open.pause_reading()
            for _ in range(100):
                a.open.write(CHUNK)
            a.open.abort()
            await eventually(lambda: a.closed)
            assert a.open.unsent == 0
            b.open.resume_reading()  # a socket notices an end only when it is read
            await eventually(lambda: b.closed)

    during(scenario())


def test_who_aborts_hears_nothing_more_even_of_what_has_come(make: MakeTransport, tmp_path: Path) -> None:
    async def scenario() -> None:
        async with joined(make, tmp_path) as (a, b):
            a.open.pause_reading()
            b.open.write(b"too late")
            await asyncio.sleep(0)
            a.open.resume_reading()
            a.open.abort()
            await eventually(lambda: a.closed and b.closed)
            assert not a.data

    during(scenario())


def test_an_endpoint_has_one_listener_until_it_closes(make: MakeTransport, tmp_path: Path) -> None:
    async def scenario() -> None:
        async with listening(make, tmp_path / "b") as b:
            other = make(Identity.open(tmp_path / "a"), NodeConfig(dial_s=2.0))
            with pytest.raises(UsageError, match="cannot be listened on"):
                await other.listen(*b.endpoint, b.accept)
        (await other.listen(*b.endpoint, b.accept)).close()

    during(scenario())


def test_open_channels_outlive_their_listener(make: MakeTransport, tmp_path: Path) -> None:
    async def scenario() -> None:
        identity = Identity.open(tmp_path / "b")
        end = End(identity, make(identity, NodeConfig(dial_s=2.0)))
        listener = await end.transport.listen("127.0.0.1", 0, end.accept)
        user = User()
        await make(Identity.open(tmp_path / "a"), NodeConfig(dial_s=2.0)).dial(*listener.endpoint, user, None)
        await eventually(lambda: end.came and end.came[0].channel)
        listener.close()
        user.open.write(b"still here")
        await eventually(lambda: end.came[0].data == b"still here")
        user.open.close()
        await eventually(lambda: user.closed and end.came[0].closed)

    during(scenario())


def test_networks_in_memory_do_not_reach_each_other(tmp_path: Path) -> None:
    async def scenario() -> None:
        async with listening(MemoryNetwork().transport, tmp_path / "b") as b:
            with pytest.raises(PeerError):
                await (
                    MemoryNetwork()
                    .transport(Identity.open(tmp_path / "a"), NodeConfig(dial_s=2.0))
                    .dial(*b.endpoint, User(), None)
                )

    during(scenario())


def test_an_open_connection_of_tls_keeps_no_large_buffers(tmp_path: Path) -> None:
    """asyncio reads into 256 KiB a connection, which with fifteen of them would be most of a node's memory."""

    async def scenario() -> None:
        tracemalloc.start()
        try:
            async with joined(TlsTransport, tmp_path) as (a, b):
                a.open.write(10 * CHUNK)
                b.open.write(10 * CHUNK)
                await eventually(lambda: a.data == b.data == 10 * CHUNK)
                a.data.clear()
                b.data.clear()
                of_tls = tracemalloc.Filter(True, sslproto.__file__), tracemalloc.Filter(True, tls_transport.__file__)
                kept = tracemalloc.take_snapshot().filter_traces(of_tls)
                assert sum(trace.size for trace in kept.traces) < 2 * 50_000
        finally:
            tracemalloc.stop()

    during(scenario())
