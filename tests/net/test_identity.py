"""Who is at the other end: real TLS connections on the loopback, honest and otherwise."""

from __future__ import annotations

import asyncio
import contextlib
import ssl
import stat
from collections.abc import Callable, Coroutine
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
from cryptography import x509
from cryptography.hazmat.primitives.asymmetric import ec, rsa
from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat

from grapevine.model.errors import PeerError, UsageError
from grapevine.model.identity import PeerId, key_from, key_to_pem
from grapevine.net import identity as module
from grapevine.net.identity import CERTIFICATE_FILE, KEY_FILE, Identity, id_of
from tests.net.hostile import eventually

Streams = tuple[asyncio.StreamReader, asyncio.StreamWriter]
Scenario = Callable[[int], Coroutine[Any, Any, None]]


@pytest.fixture
def alice(tmp_path: Path) -> Identity:
    return Identity.open(tmp_path / "alice")


@pytest.fixture
def bob(tmp_path: Path) -> Identity:
    return Identity.open(tmp_path / "bob")


@pytest.fixture
def mallory(tmp_path: Path) -> Identity:
    return Identity.open(tmp_path / "mallory")


def connection(writer: asyncio.StreamWriter) -> ssl.SSLObject:
    found = writer.get_extra_info("ssl_object")
    assert isinstance(found, ssl.SSLObject)
    return found


@dataclass
class Listener:
    """Greets who connects, and remembers who that was, or why not."""

    context: ssl.SSLContext
    met: list[PeerId] = field(default_factory=list)
    refused: list[str] = field(default_factory=list)

    async def greet(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            self.met.append(id_of(connection(writer)))
            writer.write(b"hello")
            await writer.drain()
        except PeerError as error:
            self.refused.append(str(error))
        finally:
            writer.close()

    def during(self, scenario: Scenario) -> None:
        """Run a scenario, which is told the port."""

        async def run() -> None:
            server = await asyncio.start_server(self.greet, "127.0.0.1", 0, ssl=self.context)
            async with server:
                await asyncio.wait_for(scenario(server.sockets[0].getsockname()[1]), 20)

        asyncio.run(run())


async def dial(port: int, context: ssl.SSLContext) -> Streams:
    return await asyncio.open_connection("127.0.0.1", port, ssl=context)


def test_both_ends_of_a_connection_learn_each_others_id(alice: Identity, bob: Identity) -> None:
    listener = Listener(alice.server_context())

    async def bob_calls(port: int) -> None:
        reader, writer = await dial(port, bob.client_context())
        assert id_of(connection(writer)) == id_of(connection(writer), expected=alice.id) == alice.id
        assert connection(writer).version() == "TLSv1.3"
        assert await reader.read() == b"hello"
        writer.close()

    listener.during(bob_calls)
    assert listener.met == [bob.id] != [alice.id]


def test_who_expects_somebody_else_hangs_up(alice: Identity, bob: Identity, mallory: Identity) -> None:
    listener = Listener(mallory.server_context())

    async def bob_calls_alice(port: int) -> None:
        _, writer = await dial(port, bob.client_context())
        with pytest.raises(PeerError, match=f"peer {mallory.id} answered where {alice.id} was expected"):
            id_of(connection(writer), expected=alice.id)
        writer.close()

    listener.during(bob_calls_alice)


def test_a_man_in_the_middle_is_seen_by_both_ends(alice: Identity, bob: Identity, mallory: Identity) -> None:
    """Mallory answers Bob in Alice's place, calls Alice in Bob's, and passes on what they say."""
    far = Listener(alice.server_context())

    async def scenario(alices_port: int) -> None:
        async def between(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            from_alice, to_alice = await dial(alices_port, mallory.client_context())
            writer.write(await from_alice.read())
            to_alice.close()
            writer.close()

        middle = await asyncio.start_server(between, "127.0.0.1", 0, ssl=mallory.server_context())
        async with middle:
            reader, writer = await dial(middle.sockets[0].getsockname()[1], bob.client_context())
            with pytest.raises(PeerError, match="was expected"):
                id_of(connection(writer), expected=alice.id)
            await reader.read()
            writer.close()

    far.during(scenario)
    assert far.met == [mallory.id]


def test_a_wire_that_only_passes_bytes_on_is_no_man_in_the_middle(alice: Identity, bob: Identity) -> None:
    """And one that changes a byte breaks the connection."""
    far = Listener(alice.server_context())

    async def scenario(alices_port: int) -> None:
        for spoilt in (False, True):

            async def pump(reader: asyncio.StreamReader, writer: asyncio.StreamWriter, flip: bool) -> None:
                while data := bytearray(await reader.read(65_536)):
                    data[-1] ^= flip
                    writer.write(data)
                writer.close()

            async def between(
                reader: asyncio.StreamReader, writer: asyncio.StreamWriter, spoilt: bool = spoilt
            ) -> None:
                from_alice, to_alice = await asyncio.open_connection("127.0.0.1", alices_port)
                await asyncio.gather(pump(from_alice, writer, spoilt), pump(reader, to_alice, False))

            async with await asyncio.start_server(between, "127.0.0.1", 0) as wire:
                port = wire.sockets[0].getsockname()[1]
                if spoilt:
                    with pytest.raises(ssl.SSLError):
                        await dial(port, bob.client_context())
                else:
                    reader, writer = await dial(port, bob.client_context())
                    assert id_of(connection(writer), expected=alice.id) == alice.id
                    assert await reader.read() == b"hello"
                    writer.close()

    far.during(scenario)
    assert far.met == [bob.id]


def test_somebody_elses_certificate_is_of_no_use_without_the_key(alice: Identity, mallory: Identity) -> None:
    """Everybody may issue certificates, also one for Alice's key; nobody but Alice can use it."""
    (mallory._folder / CERTIFICATE_FILE).write_bytes(alice.certificate())
    with pytest.raises(UsageError, match="key or certificate has changed"):
        mallory.server_context()


async def is_not_let_in(port: int, context: ssl.SSLContext) -> None:
    """In TLS 1.3 a client may learn that as late as at its first read; asyncio closes without another word."""
    try:
        reader, writer = await dial(port, context)
        assert await reader.read() == b""
        writer.close()
    except (ssl.SSLError, ConnectionError):
        pass


def handshake(server: ssl.SSLContext, client: ssl.SSLContext) -> ssl.SSLObject:
    """The server's end of a handshake, without sockets: asyncio would keep the server's errors to itself."""
    to_server, to_client = ssl.MemoryBIO(), ssl.MemoryBIO()
    end = server.wrap_bio(to_server, to_client, server_side=True)
    other = client.wrap_bio(to_client, to_server)
    for turn in (other, end, other, end):
        with contextlib.suppress(ssl.SSLWantReadError):
            turn.do_handshake()
    return end


def servers_verdict(server: ssl.SSLContext, client: ssl.SSLContext) -> str:
    """Why a handshake fails; empty if it does not."""
    try:
        handshake(server, client)
    except ssl.SSLError as error:
        return str(error.reason)
    return ""


def test_a_client_without_a_certificate_is_refused(alice: Identity, bob: Identity) -> None:
    listener = Listener(alice.server_context())
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
    listener.during(lambda port: is_not_let_in(port, context))
    assert not listener.met and not listener.refused
    assert servers_verdict(alice.server_context(), context) == "PEER_DID_NOT_RETURN_A_CERTIFICATE"
    assert servers_verdict(alice.server_context(), bob.client_context()) == ""


def test_older_tls_is_refused_on_either_side(alice: Identity, bob: Identity) -> None:
    old_client, old_server = bob.client_context(), alice.server_context()
    for context in (old_client, old_server):
        context.minimum_version = context.maximum_version = ssl.TLSVersion.TLSv1_2
    for server, client in ((alice.server_context(), old_client), (old_server, bob.client_context())):
        listener = Listener(server)
        listener.during(lambda port, client=client: is_not_let_in(port, client))  # type: ignore[misc]
        assert not listener.met and not listener.refused
        assert servers_verdict(server, client) == "UNSUPPORTED_PROTOCOL"
    assert servers_verdict(old_server, old_client) == ""  # they would agree, if they were let


def test_a_certificate_by_another_authority_is_refused(alice: Identity, tmp_path: Path) -> None:
    """Not that it mattered; but a network of its own can have an authority of its own."""
    key = key_from("self-signed")
    name = module._named("me")
    certificate = (
        x509.CertificateBuilder(name, name, key.public_key(), 1, *module._ALWAYS)
        .add_extension(x509.BasicConstraints(ca=False, path_length=None), critical=True)
        .sign(key, None)
    )
    client = foreign_context(tmp_path / "client", key, certificate, ssl.PROTOCOL_TLS_CLIENT)
    assert servers_verdict(alice.server_context(), client) == "CERTIFICATE_VERIFY_FAILED"


def foreign_context(folder: Path, key: Any, certificate: x509.Certificate, side: int) -> ssl.SSLContext:
    """A context with a key and certificate that no Identity would use."""
    folder.mkdir()
    (folder / "key").write_bytes(key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption()))
    (folder / "crt").write_bytes(certificate.public_bytes(Encoding.PEM))
    context = ssl.SSLContext(side)
    context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
    context.load_cert_chain(folder / "crt", folder / "key")
    return context


KEYS = {
    "RSA": lambda: rsa.generate_private_key(65_537, 2_048),
    "P-256": lambda: ec.generate_private_key(ec.SECP256R1()),
}


@pytest.mark.parametrize("make", KEYS.values(), ids=KEYS.keys())
def test_keys_of_other_kinds_are_refused_on_either_side(
    make: Callable[[], Any], alice: Identity, bob: Identity, tmp_path: Path
) -> None:
    key = make()
    certificate = module._issue(key.public_key(), "somebody")
    listener = Listener(alice.server_context())

    async def calls(port: int) -> None:
        client = foreign_context(tmp_path / "client", key, certificate, ssl.PROTOCOL_TLS_CLIENT)
        reader, writer = await dial(port, client)
        assert await reader.read() == b""
        writer.close()

    listener.during(calls)
    assert listener.met == []
    assert listener.refused == ["a peer showed a certificate with a key of another kind; peers have Ed25519 keys"]

    async def is_called(port: int) -> None:
        _, writer = await dial(port, bob.client_context())
        with pytest.raises(PeerError, match="a key of another kind"):
            id_of(connection(writer))
        writer.close()

    Listener(foreign_context(tmp_path / "server", key, certificate, ssl.PROTOCOL_TLS_SERVER)).during(is_called)


def test_nobody_can_be_the_common_authority_whose_key_everybody_has(alice: Identity, tmp_path: Path) -> None:
    key = module._AUTHORITY_KEY
    certificate = module._issue(key.public_key(), "me")
    listener = Listener(alice.server_context())

    async def calls(port: int) -> None:
        _, writer = await dial(port, foreign_context(tmp_path / "ca", key, certificate, ssl.PROTOCOL_TLS_CLIENT))
        writer.close()
        await eventually(lambda: listener.refused)

    listener.during(calls)
    assert listener.refused == ["a peer showed a certificate with the common authority's key; everybody has that"]


def test_no_session_is_resumed_so_every_connection_proves_its_keys(alice: Identity, bob: Identity) -> None:
    listener = Listener(alice.server_context())

    async def scenario(port: int) -> None:
        reader, writer = await dial(port, bob.client_context())
        assert await reader.read() == b"hello"
        session = connection(writer).session
        assert session is None or not session.has_ticket
        writer.close()

    listener.during(scenario)


def test_where_nobody_asked_for_a_certificate_there_is_no_id(alice: Identity, bob: Identity) -> None:
    careless = alice.server_context()
    careless.verify_mode = ssl.CERT_NONE
    with pytest.raises(PeerError, match="a peer showed no certificate"):
        id_of(handshake(careless, bob.client_context()))
    assert id_of(handshake(alice.server_context(), bob.client_context())) == bob.id


# The data folder


def test_an_identity_is_made_on_first_use_and_stays(tmp_path: Path) -> None:
    first = Identity.open(tmp_path / "new" / "node")
    key = tmp_path / "new" / "node" / KEY_FILE
    assert stat.S_IMODE(key.stat().st_mode) == 0o600
    assert stat.S_IMODE(key.parent.stat().st_mode) == 0o700
    assert sorted(path.name for path in key.parent.iterdir()) == [CERTIFICATE_FILE, KEY_FILE]
    again = Identity.open(key.parent)
    assert (again.id, again.certificate()) == (first.id, first.certificate())
    assert Identity.open(tmp_path / "other").id != first.id


def test_processes_that_start_at_once_agree_on_one_key(tmp_path: Path) -> None:
    with ThreadPoolExecutor(8) as pool:
        opened = list(pool.map(lambda _: Identity.open(tmp_path / "node"), range(8)))
    assert len({identity.id for identity in opened}) == 1
    assert sorted(path.name for path in (tmp_path / "node").iterdir()) == [CERTIFICATE_FILE, KEY_FILE]


@pytest.mark.parametrize("mode", [0o640, 0o604, 0o660, 0o644])
def test_a_key_that_others_may_read_is_refused(mode: int, alice: Identity) -> None:
    (alice._folder / KEY_FILE).chmod(mode)
    with pytest.raises(UsageError, match=f"others than its owner may use this key \\(mode {mode:o}\\); run chmod 600"):
        Identity.open(alice._folder)


RSA_PEM = rsa.generate_private_key(65_537, 2_048).private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption())


@pytest.mark.parametrize(
    "content",
    [b"", b"garbage", key_to_pem(key_from("x"))[:60], key_to_pem(key_from("x")).replace(b"MC4", b"MC5"), RSA_PEM],
    ids=["empty", "garbage", "cut off", "changed", "RSA"],
)
def test_a_damaged_key_is_refused_and_never_replaced(content: bytes, alice: Identity) -> None:
    path = alice._folder / KEY_FILE
    path.write_bytes(content)
    with pytest.raises(UsageError, match="holds no readable Ed25519 key; restore it, or move it away") as refusal:
        Identity.open(alice._folder)
    assert "\n" not in str(refusal.value)
    assert path.read_bytes() == content


def test_a_lost_or_damaged_certificate_is_no_loss(alice: Identity) -> None:
    path = alice._folder / CERTIFICATE_FILE
    before = path.read_bytes()
    for spoil in (path.unlink, lambda: path.write_bytes(b"garbage")):
        spoil()
        assert Identity.open(alice._folder).id == alice.id
        assert path.read_bytes() == before


def test_a_folder_that_cannot_be_written_is_refused(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("in the way")
    with pytest.raises(UsageError, match="cannot hold an identity"):
        Identity.open(tmp_path / "file")


def test_events_signed_by_a_node_name_it_as_their_publisher(alice: Identity, bob: Identity) -> None:
    event = alice.sign(7, 1, b"news")
    assert event.check() == event.check(alice.id) == alice.id
    with pytest.raises(PeerError, match=f"is by {alice.id}, not by {bob.id}"):
        event.check(bob.id)
