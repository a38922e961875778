"""Feeds with several publishers (§2): updates of the others go through the master."""

from __future__ import annotations

import pytest

from grapevine.systems.rappel.messages import Submit, Submitted
from grapevine.systems.rappel.submissions import Submissions
from tests.rappel_world import LOCATED_S, Publisher, RappelWorld


@pytest.mark.parametrize("seed", range(3))
def test_updates_of_other_publishers_go_through_the_master_once_each(seed: int) -> None:
    """§2, with half of the messages lost and many doubled."""
    world = RappelWorld([[], [0], [0], []], publishers=[0], seed=seed)
    world.start()
    world.run(LOCATED_S)
    world.engine.disturb(loss=0.5, duplication=0.3)
    for number in range(5):
        world.publish(0, node=number % 3 + 1, payload=b"%d" % number)
        world.run(1)
    world.run(200)
    world.engine.disturb()
    world.run(300)
    assert sorted(update.payload for update in world.feed(0).cache.values()) == [b"0", b"1", b"2", b"3", b"4"]
    assert sorted(world.delivered(1)) == sorted(world.delivered(2)) == [1, 2, 3, 4, 5]
    assert not world.witness.noise


def test_a_master_publisher_that_subscribes_to_its_feed_gets_what_others_publish() -> None:
    world = RappelWorld([[0], [0]], publishers=[0])
    world.start()
    world.run(LOCATED_S)
    world.publish(0, node=1)
    world.run(1)
    assert world.delivered(0) == world.delivered(1) == [1]


def test_a_submission_is_repeated_until_it_is_answered() -> None:
    node = Publisher()
    node.node.publisher_of = lambda feed: 9
    submissions = Submissions(node.node, node.updates)
    submissions.submit(5, b"news")
    (sent,) = node.sent(9, Submit)
    submissions.resubmit((5, sent.submission))
    assert node.sent(9, Submit) == [sent, sent]
    submissions.on_submitted(Submitted(5, sent.submission))
    submissions.resubmit((5, sent.submission))
    assert node.sent(9, Submit) == [sent, sent]
