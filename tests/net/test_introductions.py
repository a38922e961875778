"""Introductions: where peers are found travels beside the messages that name them, once, and only if it is signed."""

from __future__ import annotations

import asyncio
from typing import Any

from grapevine.net.contacts import Contact, Contacts
from grapevine.net.introductions import Introductions
from grapevine.net.messages import Introduce, Seek
from grapevine.systems.contracts.peer import Address
from tests.net.hostile import contact_of, eventually
from tests.net.nodes import during


class Wire:
    """A connection, as introductions use one."""

    def __init__(self) -> None:
        self.sent: list[Any] = []
        self.introduced: dict[Address, int] = {}

    def send(self, message: Any) -> bool:
        self.sent.append(message)
        return True

    def introduce(self, address: Address, time_ms: int) -> bool:
        is_new = self.introduced.get(address, -1) < time_ms
        self.introduced[address] = time_ms
        return is_new


def introductions_of(*known: Contact) -> tuple[Introductions, Contacts, list[str]]:
    contacts, blamed = Contacts(100), list[str]()
    for contact in known:
        contacts.learn(contact)
    return Introductions(contacts, lambda _, what, points, error: blamed.append(what)), contacts, blamed


def test_contacts_travel_once_before_the_messages_that_name_them_and_again_when_they_are_newer() -> None:
    alice, wire = contact_of("alice"), Wire()
    introductions, contacts, _ = introductions_of(alice)
    for _ in range(2):
        introductions.send_before(wire, [alice.id.address, alice.id.address, 12345])  # type: ignore[arg-type]
    assert wire.sent == [Introduce((alice,))]
    contacts.learn(newer := contact_of("alice", time_ms=2))
    introductions.send_before(wire, [alice.id.address])  # type: ignore[arg-type]
    assert wire.sent[1:] == [Introduce((newer,))]


def test_many_contacts_go_in_several_messages() -> None:
    crowd, wire = [contact_of(f"{number}") for number in range(70)], Wire()
    introductions, _, _ = introductions_of(*crowd)
    introductions.send_before(wire, [contact.id.address for contact in crowd])  # type: ignore[arg-type]
    assert [len(message.contacts) for message in wire.sent] == [64, 6]


def test_what_is_learnt_after_a_forged_contact_is_nothing_and_the_sender_is_blamed() -> None:
    alice, bob = contact_of("alice"), contact_of("bob")
    forged = Contact(alice.key, alice.host, 10, 99, alice.signature)
    introductions, contacts, blamed = introductions_of()
    introductions.on_introduce(Wire(), Introduce((forged, bob)))  # type: ignore[arg-type]
    assert blamed == ["forged"] and contacts.find(alice.id.address) is contacts.find(bob.id.address) is None


def test_who_is_sought_is_found_as_soon_as_somebody_answers() -> None:
    async def scenario() -> None:
        alice, wires = contact_of("alice"), [Wire() for _ in range(5)]
        introductions, _, _ = introductions_of()
        seeking = asyncio.create_task(introductions.locate(alice.id.address, wires))  # type: ignore[arg-type]
        await eventually(lambda: wires[0].sent)
        assert [wire.sent for wire in wires] == [[Seek(alice.id.address)]] * 3 + [[], []]
        introductions.on_introduce(wires[0], Introduce((alice,)))  # type: ignore[arg-type]
        assert await seeking == alice
        assert await introductions.locate(12345, []) is None

    during(scenario())
