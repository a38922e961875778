"""Where peers are: only what its owner signed counts, the latest of it, and not too much of it."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import msgspec
import pytest

from grapevine.model.errors import PeerError, UsageError
from grapevine.model.identity import PeerId
from grapevine.net import contacts as module
from grapevine.net.contacts import Contact, Contacts, parse_endpoint, parse_endpoints
from grapevine.net.data_folder import CONTACTS_FILE, DataFolder
from grapevine.net.identity import Identity
from grapevine.net.retention import Retention


@pytest.fixture
def alice(tmp_path: Path) -> Identity:
    return Identity.open(tmp_path / "alice")


@pytest.fixture
def bob(tmp_path: Path) -> Identity:
    return Identity.open(tmp_path / "bob")


def test_a_signed_contact_is_learnt_and_found(alice: Identity) -> None:
    known, contact = Contacts(10), alice.contact("10.0.0.1", 7000, 5)
    assert known.learn(contact) == alice.id
    assert known.find(alice.id.address) == contact and known.find(1) is None


@pytest.mark.parametrize(
    "change", [{"host": "10.0.0.2"}, {"port": 7001}, {"time_ms": 6}, {"signature": b""}, {"signature": b"x" * 64}]
)
def test_a_changed_contact_is_refused(alice: Identity, change: dict[str, object]) -> None:
    known = Contacts(10)
    with pytest.raises(PeerError, match="did not sign"):
        known.learn(msgspec.structs.replace(alice.contact("10.0.0.1", 7000, 5), **change))
    assert known.find(alice.id.address) is None


def test_nobody_signs_for_another(alice: Identity, bob: Identity) -> None:
    forged = msgspec.structs.replace(bob.contact("10.0.0.66", 1, 9), key=alice.contact("10.0.0.1", 7000, 5).key)
    with pytest.raises(PeerError, match="did not sign"):
        Contacts(10).learn(forged)


@pytest.mark.parametrize("key", [b"", b"short", b"\xff" * 32, b"k" * 33])
def test_a_key_that_is_none_is_refused(alice: Identity, key: bytes) -> None:
    with pytest.raises(PeerError):
        Contacts(10).learn(msgspec.structs.replace(alice.contact("10.0.0.1", 7000, 5), key=key))


def test_a_later_contact_replaces_an_earlier_one_and_never_the_other_way_round(alice: Identity) -> None:
    known, early, late = Contacts(10), alice.contact("10.0.0.1", 7000, 5), alice.contact("10.0.0.2", 7000, 6)
    for contact in (early, late, early):
        assert known.learn(contact) == alice.id
    assert known.find(alice.id.address) == late


@pytest.mark.parametrize(
    ("host", "port"),
    [
        ("example.org", 7000),
        ("", 7000),
        ("10.0.0.1", 0),
        ("10.0.0.1", 65_536),
        ("10.0.0.1", -1),
        ("0.0.0.0", 7000),
        ("::", 7000),
        ("224.0.0.1", 7000),
        ("fe80::1%" + "x" * 1_000, 7000),  # a scope may be as long as it likes
    ],
)
def test_a_contact_where_nobody_can_be_is_refused_though_signed(alice: Identity, host: str, port: int) -> None:
    with pytest.raises(PeerError):
        Contacts(10).learn(alice.contact(host, port, 5))


def test_an_address_that_was_made_to_measure_does_not_replace_its_owner(
    alice: Identity, bob: Identity, monkeypatch: pytest.MonkeyPatch
) -> None:
    @dataclass(frozen=True)
    class Colliding(PeerId):
        @property
        def address(self) -> int:
            return 42

    monkeypatch.setattr(module, "PeerId", Colliding)
    known, owner = Contacts(10), alice.contact("10.0.0.1", 7000, 5)
    known.learn(owner)
    with pytest.raises(PeerError, match="made to measure"):
        known.learn(bob.contact("10.0.0.66", 7000, 9))
    assert known.find(42) == owner


def test_the_contacts_used_last_are_kept_and_no_more(tmp_path: Path) -> None:
    everybody = [Identity.open(tmp_path / str(n)).contact("10.0.0.1", 7000, n) for n in range(6)]
    known = Contacts(3)
    for contact in everybody[:3]:
        known.learn(contact)
    assert known.find(everybody[0].id.address)
    for contact in everybody[3:5]:
        known.learn(contact)
    found = [known.find(contact.id.address) is not None for contact in everybody]
    assert found == [True, False, False, True, True, False]
    assert known.latest(2) == [everybody[4], everybody[3]]


async def _lives_of(folder: Path) -> None:
    async with DataFolder.open(folder, Retention(), synced=False) as home:
        contact = Identity.open(folder / "other").contact("10.0.0.1", 7000, 5)
        forged = msgspec.structs.replace(contact, host="10.0.0.66")
        (folder / CONTACTS_FILE).write_bytes(msgspec.msgpack.encode([contact, forged]))
        known = Contacts(10)
        assert home.contacts(known) == [contact] and known.find(contact.id.address) == contact
        home.remember(known)
        assert home.contacts(Contacts(10)) == [contact]
        for damage in (b"", b"\xc1", b"\x93\x01", msgspec.msgpack.encode([contact])[:-5]):
            (folder / CONTACTS_FILE).write_bytes(damage)
            assert home.contacts(Contacts(10)) == []


def test_contacts_survive_a_session_and_a_damaged_file_does_no_harm(tmp_path: Path) -> None:
    import asyncio

    asyncio.run(_lives_of(tmp_path))


@pytest.mark.parametrize(
    ("text", "endpoint"),
    [("127.0.0.1:7000", ("127.0.0.1", 7000)), ("[::1]:7000", ("::1", 7000)), ("a.example:0", ("a.example", 0))],
)
def test_endpoints_are_read(text: str, endpoint: tuple[str, int]) -> None:
    assert parse_endpoint(text) == endpoint


@pytest.mark.parametrize("text", ["", "127.0.0.1", ":7000", "a:b", "a:-1", "a:65536", "a:７０"])
def test_what_is_no_endpoint_is_refused_with_an_example(text: str) -> None:
    with pytest.raises(UsageError, match="HOST:PORT"):
        parse_endpoint(text)


def test_nobody_joins_at_port_zero() -> None:
    with pytest.raises(UsageError, match="port"):
        parse_endpoints(["127.0.0.1:0"])


def test_contacts_travel_as_they_are(alice: Identity) -> None:
    contact = alice.contact("10.0.0.1", 7000, 5)
    assert msgspec.msgpack.decode(msgspec.msgpack.encode(contact), type=Contact) == contact
