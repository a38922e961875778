"""Trellis live: what a node's host asks of its peer, and messages as they come off the wire."""

from __future__ import annotations

import msgspec

from grapevine.model.identity import PeerId, key_from
from grapevine.systems.contracts.peer import LinkDown, LinkUp, Send
from grapevine.systems.trellis.live import LiveTrellis
from grapevine.systems.trellis.peer.config import TrellisPeerConfig
from grapevine.systems.trellis.peer.messages import (
    FRIEND,
    Accept,
    Carried,
    Connect,
    Disconnect,
    Gone,
    Label,
    Refuse,
    Sample,
    Update,
)
from grapevine.systems.trellis.peer.peer import TrellisPeer

ME = PeerId.of(key_from("me").public_key().public_bytes_raw())
TOPIC, OTHER = 2**63 + 5, 77


def live() -> LiveTrellis:
    return LiveTrellis("trellis", TrellisPeerConfig(), ME)


def linked(now: float = 1.0) -> TrellisPeer:
    """A peer with one link, that the other end has asked for."""
    peer = live().peer([TOPIC], [], session=5_000_000)
    peer.start(0.0)
    answers = peer.on_message(now, OTHER, Connect(1, FRIEND, 0, 1.0))
    number = next(e.message.link for e in answers if isinstance(e, Send) and isinstance(e.message, Accept))
    opened = peer.on_message(now, OTHER, Update(number, 1, 0, 1, 0, 1, (Label(TOPIC, OTHER),), ()))
    assert LinkUp(OTHER) in opened
    return peer


def test_a_newcomer_calls_those_that_it_is_connected_to() -> None:
    sent = [effect for effect in live().peer([], [8, 9], session=1).start(0.0) if isinstance(effect, Send)]
    assert [effect.to for effect in sent] == [8, 9]
    assert all(isinstance(effect.message, Sample) and not effect.message.is_answer for effect in sent)


def test_a_later_session_has_a_higher_version_of_its_card() -> None:
    first, second = (live().peer([3], [], session) for session in (1_000_000_000, 1_002_000_000))
    assert first.turns.version < second.turns.version


def test_a_link_is_open_with_the_first_update_and_over_when_the_connection_breaks() -> None:
    peer = linked()
    assert peer.roles() == {OTHER: ["successor", "predecessor"]}
    peer.on_timer(2.0, ("alarm", peer._alarms))
    assert list(peer.partners(2.0, TOPIC)) == [OTHER] and peer.has_path(2.0, TOPIC)
    assert set(peer.carried(2.0)) == {TOPIC}
    assert LinkDown(OTHER) in peer.on_unreachable(3.0, OTHER)
    assert not peer.roles() and OTHER in peer.links.slots, "the other end may count it still, so its slot is taken"
    peer.on_timer(3.0 + peer.config.silence_s, ("alarm", peer._alarms))
    assert not peer.links.slots


def test_what_does_not_fit_a_link_ends_it_at_the_other_end() -> None:
    peer = linked()
    stray = peer.on_message(2.0, 99, Update(123, 1, 0, 0, 0, 1))
    assert Send(99, Disconnect(123)) in stray


def test_facts_and_whom_messages_name_survive_the_wire() -> None:
    facts = Label(TOPIC, 3, 4, 5, True, False), Carried(TOPIC, 0, 2, False), Gone(TOPIC, 3)
    for message in (Update(2**63 - 1, 1, 2, 3, 4, 5, facts, (1, 2**64 - 1)), Refuse(3, (8,))):
        decoded = msgspec.msgpack.decode(msgspec.msgpack.encode(message), type=LiveTrellis.messages)
        assert decoded == message
    assert list(Refuse(3, (8,)).named()) == [8]
