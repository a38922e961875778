"""Vitis live: ring ids that nobody can choose, and sessions that follow each other."""

from __future__ import annotations

from grapevine.model.identity import PeerId, key_from
from grapevine.systems.contracts.peer import Send
from grapevine.systems.vitis.live import LiveVitis
from grapevine.systems.vitis.peer.config import VitisPeerConfig
from grapevine.systems.vitis.peer.messages import Descriptor, Sample

ME = PeerId.of(key_from("me").public_key().public_bytes_raw())


def test_a_ring_id_other_than_the_address_is_not_believed() -> None:
    peer = LiveVitis("vitis", VitisPeerConfig(), ME).peer([], [], session=1)
    assert peer.overlay.book.me.ring_id == ME.address
    known = Descriptor(5, 5, 1, 0, 0.0), Descriptor(6, 99, 1, 0, 0.0)
    peer.on_message(1.0, 5, Sample(known, is_answer=True))
    assert set(peer.overlay.book.known) == {5}


def test_a_later_session_has_a_higher_version_of_its_topics() -> None:
    live = LiveVitis("vitis", VitisPeerConfig(), ME)
    first, second = (live.peer([3, 4], [], session) for session in (1, 2))
    assert first.topics == second.topics == {3, 4}
    assert first.interests.version < second.interests.version


def test_a_newcomer_calls_those_that_it_is_connected_to() -> None:
    peer = LiveVitis("vitis", VitisPeerConfig(), ME).peer([], [8, 9], session=1)
    sent = [effect for effect in peer.start(0.0) if isinstance(effect, Send)]
    assert [effect.to for effect in sent] == [8, 9]
    assert all(isinstance(effect.message, Sample) and not effect.message.is_answer for effect in sent)
