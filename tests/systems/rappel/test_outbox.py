"""Effects of one call leave in the order in which they came up, and once."""

from __future__ import annotations

from grapevine.systems.contracts.peer import LinkUp, Send, SetTimer
from grapevine.systems.rappel.messages import JoinDeny
from grapevine.systems.rappel.outbox import Outbox


def test_effects_are_taken_once_and_in_their_order() -> None:
    out = Outbox()
    out.timer("ping", 30.0)
    out.send(3, JoinDeny(1))
    out.add(LinkUp(3))
    assert out.take() == [SetTimer("ping", 30.0), Send(3, JoinDeny(1)), LinkUp(3)]
    assert out.take() == []
