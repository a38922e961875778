"""Effects of one call leave in the order in which they came up, and once."""

from __future__ import annotations

from grapevine.systems.contracts.peer import LinkUp, Send, SetTimer
from grapevine.systems.rappel.messages import JoinDeny, JoinForward, Update
from grapevine.systems.rappel.outbox import Outbox, Scale


def test_effects_are_taken_once_and_in_their_order() -> None:
    out = Outbox()
    out.timer("ping", 30.0)
    out.send(3, JoinDeny(1))
    out.add(LinkUp(3))
    assert out.take() == [SetTimer("ping", 30.0), Send(3, JoinDeny(1)), LinkUp(3)]
    assert out.take() == []


def test_a_scale_weighs_one_message_in_101_as_live_nodes_send_it() -> None:
    scale = Scale()
    out = Outbox(scale)
    for _ in range(100):
        out.send(3, JoinDeny(1))
    assert scale.mean_bytes is None
    out.send(3, JoinForward(1, 7))  # [kind, feed, address]: 1 + 12 + 1 bytes, and 9 of a live address
    assert scale.mean_bytes == 1 + 12 + 1 + 9


def test_events_are_not_weighed() -> None:
    scale = Scale()
    for _ in range(202):
        scale.pass_by(Update(1, 1, bytes(1_000)))
    assert scale.mean_bytes is None
