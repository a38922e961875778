"""Audits (§3.4), message by message: how a candidate becomes a friend, or does not."""

from __future__ import annotations

from random import Random

from grapevine.systems.contracts.peer import Address, Effects, Send
from grapevine.systems.rappel import bloom
from grapevine.systems.rappel.config import RappelConfig
from grapevine.systems.rappel.messages import FriendReply, FriendRequest, Profile, WhoAreYou
from grapevine.systems.rappel.node import Memory, Setup
from grapevine.systems.rappel.peer import RappelPeer


def auditor(friends: int = 1) -> RappelPeer:
    """A node at the origin of a line that subscribes to feed 1 and has met 3."""
    setup = Setup(
        me=0,
        subscriptions=[1],
        published=[1],
        publisher_of=lambda topic: 0,
        landmarks=[],
        random=Random(1),
        memory=Memory(position=(0.0, 0.0)),
    )
    peer = RappelPeer(setup, RappelConfig(dimensions=2, friends=friends))
    peer.start(0.0)
    peer.meet(0.0, 3)
    return peer


def profile(distance: float, *feeds: int) -> Profile:
    return Profile((1, 1), bloom.to_bytes(bloom.bloom_of(map(str, feeds))), (distance, 0.0))


def sent(effects: Effects) -> list[tuple[Address, type]]:
    return [(effect.to, type(effect.message)) for effect in effects if isinstance(effect, Send)]


def befriended(peer: RappelPeer, node: Address, distance: float) -> None:
    peer.on_timer(30.0, "audit")
    peer.on_message(30.1, node, profile(distance, 1))
    peer.on_message(30.2, node, FriendReply(True, (1, 1), ()))


def test_a_candidate_is_asked_who_it_is_then_whether_it_wants_a_fan_and_is_a_friend_then() -> None:
    peer = auditor()
    assert sent(peer.on_timer(30.0, "audit")) == [(3, WhoAreYou)]
    assert sent(peer.on_message(30.1, 3, profile(5.0, 1))) == [(3, FriendRequest)]
    peer.on_message(30.2, 3, FriendReply(True, (1, 1), (4, 5)))
    assert set(peer.friendship.friends) == {3}
    assert set(peer.friendship.candidates) == {4, 5}, "its friends are candidates"


def test_who_would_be_no_better_than_the_friends_there_are_is_not_asked() -> None:
    peer = auditor()
    befriended(peer, 3, 5.0)
    peer.meet(31.0, 4)
    assert sent(peer.on_timer(60.0, "audit")) == [(4, WhoAreYou)]
    assert sent(peer.on_message(60.1, 4, profile(50.0, 1))) == []
    assert set(peer.friendship.friends) == {3}


def test_a_better_one_takes_the_place_of_a_friend() -> None:
    peer = auditor()
    befriended(peer, 3, 50.0)
    peer.meet(31.0, 4)
    befriended(peer, 4, 5.0)
    assert set(peer.friendship.friends) == {4}


def test_after_a_refusal_the_next_candidate_is_audited_while_there_are_too_few_friends() -> None:
    peer = auditor(friends=2)
    peer.meet(0.0, 4)
    ((first, _),) = sent(peer.on_timer(30.0, "audit"))
    peer.on_message(30.1, first, profile(5.0, 1))
    assert sent(peer.on_message(30.2, first, FriendReply(False, (1, 1), ()))) == [(7 - first, WhoAreYou)]


def test_a_candidate_that_has_not_answered_by_the_next_audit_is_forgotten() -> None:
    peer = auditor()
    peer.on_timer(30.0, "audit")
    assert set(peer.friendship.candidates) == {3}
    peer.on_timer(60.0, "audit")
    assert not peer.friendship.candidates


def test_a_node_refuses_fans_beyond_twice_the_friends() -> None:
    """§3.1.2: first come, first served."""
    peer = auditor(friends=1)
    answers = [peer.on_message(1.0, fan, FriendRequest((1, 1))) for fan in (10, 11, 12)]
    accepted = [effect.message.accepted for (effect,) in answers if isinstance(effect, Send)]
    assert accepted == [True, True, False]
