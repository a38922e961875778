"""Rappel live: whose feeds topics are, and how a network begins."""

from __future__ import annotations

import pytest

from grapevine.model.errors import UsageError
from grapevine.model.identity import PeerId, key_from
from grapevine.systems.contracts.peer import Send
from grapevine.systems.rappel.config import RappelConfig
from grapevine.systems.rappel.live import LiveRappel
from grapevine.systems.rappel.messages import Submit, Submitted, WhereAreYou

ME, OTHER = (PeerId.of(key_from(name).public_key().public_bytes_raw()) for name in ("me", "other"))


def system() -> LiveRappel:
    return LiveRappel("rappel", RappelConfig(), ME)


def test_only_the_peer_after_whom_a_feed_is_called_publishes_in_it() -> None:
    live = system()
    topic = live.topic(f"{OTHER}/news")
    assert live.may_publish(topic, OTHER)
    assert not live.may_publish(topic, ME)
    assert not live.may_publish(topic + 1, OTHER), "nobody knows that feed"


@pytest.mark.parametrize("name", ["news", "/news", "somebody/news"])
def test_a_topic_that_is_nobodys_feed_is_refused(name: str) -> None:
    with pytest.raises(UsageError):
        system().topic(name)


def test_the_first_node_of_a_network_is_at_the_origin() -> None:
    peer = system().peer([], [], session=1)
    peer.start(0.0)
    assert peer.position == (0.0,) * peer.config.dimensions


def test_those_whom_a_newcomer_begins_with_are_its_landmarks() -> None:
    peer = system().peer([], [5, 6], session=4)
    asked = [effect.to for effect in peer.start(0.0) if isinstance(effect, Send)]
    assert asked == [5, 6] and peer.position == () and peer.session == 5
    assert all(isinstance(effect.message, WhereAreYou) for effect in peer.start(0.0) if isinstance(effect, Send))


def test_who_publishes_a_feed_is_the_root_of_its_tree() -> None:
    live = system()
    topic = live.topic(f"{ME}/news")
    peer = live.peer([], [], session=1)
    peer.start(0.0)
    live.join(peer, 0.0, topic)
    assert peer.feeds[topic].is_root and peer.has_path(0.0, topic)


def test_submissions_are_no_messages_of_a_live_network() -> None:
    """Who took one would pass on what it did not seal."""
    assert not {Submit, Submitted} & set(LiveRappel.messages.__args__)
