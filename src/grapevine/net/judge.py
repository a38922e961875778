"""The oracle of `torture`, for a network of real processes: it hears what groups report, and says what was broken.

Applications read under a name, so they are owed every event that was acknowledged after their subscription was; or a
gap that covers it. Events are called by the cluster's numbers, and each payload repeats its own (`orders.payload_of`).
Times are those of the cluster: a publication begins when it is ordered, a subscription when its group has said that it
is on the disk. So nobody is owed too much.
"""

from __future__ import annotations

import time
from collections.abc import Iterable, Mapping, Set
from typing import cast, get_args

from grapevine.model.identity import PeerId
from grapevine.net.envelope import Event, Gap, Loss
from grapevine.net.orders import Given, Published, payload_of
from grapevine.net.torture.oracle import Oracle, Violation

READER = "cluster"  # the name under which applications read
_BYTES = 8  # of the payload by which the oracle knows an event; readers have compared the rest


class Judge:
    """Told what is ordered and reported; asked what is missing, and in the end for the verdict."""

    def __init__(self) -> None:
        self._oracle = Oracle()
        self._peers: dict[int, PeerId] = {}
        self._publishers: dict[str, PeerId] = {}  # as they are written in reports
        self._sessions: dict[str, tuple[int, int]] = {}  # of readers: of the group's process, and in that
        self._ordered: dict[int, tuple[int, str]] = {}  # events: publisher and topic

    def on_opened(self, node: int, peer: PeerId) -> None:
        """A node is open, for the first time or again."""
        self._peers[node] = peer
        self._oracle.on_node(_name(node), peer.full)

    def on_subscribed(self, topics: Mapping[int, Iterable[str]]) -> None:
        """These nodes' readers have begun: their subscriptions are on the disk."""
        now = time.monotonic()
        for node, names in topics.items():
            for topic in names:
                self._oracle.on_subscribed(_reader(node, topic), _name(node), topic, now)

    def on_ordered(self, event: int, node: int, topic: str) -> None:
        """A node is told to publish an event."""
        self._ordered[event] = node, topic
        self._oracle.on_publish(_name(node), topic, payload_of(event, _BYTES), time.monotonic())

    def on_published(self, answer: Published) -> None:
        """It has, or could not."""
        payload, (node, topic) = payload_of(answer.event, _BYTES), self._ordered[answer.event]
        if not answer.is_kept:
            self._oracle.on_refused(payload)
        elif answer.sequence is None:
            self._oracle.on_acknowledged(payload, None)
        else:
            self._oracle.on_acknowledged(payload, Event(topic, self._peers[node], answer.sequence, 0.0, payload))

    def on_given(self, process: int, given: Given) -> None:
        """A reader was given something; `process` counts the processes that its group has had."""
        reader, session = _reader(given.node, given.topic), (process, given.session)
        if self._sessions.get(reader) != session:
            self._sessions[reader] = session
            self._oracle.on_session(reader)
        publisher = self._publishers.get(given.publisher)
        if publisher is None:
            publisher = self._publishers[given.publisher] = PeerId.parse(given.publisher)
        if given.loss is None:
            payload = b"damaged" if given.event is None else payload_of(given.event, _BYTES)
            self._oracle.on_given(reader, Event(given.topic, publisher, given.first, 0.0, payload))
        else:
            assert given.loss in get_args(Loss)
            loss = cast(Loss, given.loss)
            self._oracle.on_given(reader, Gap(given.topic, publisher, given.first, given.last, loss))

    def is_waiting(self, down: Set[int]) -> bool:
        """Whether readers of nodes that are up are owed something which neither an event nor a gap has covered."""
        return bool(self._oracle.unreported(self._up(down)))

    def verdict(self, down: Set[int]) -> tuple[list[Violation], int]:
        """Every promise that was broken, and how many deliveries were lost and reported. Asked once, in the end."""
        reported = self._oracle.judge(self._up(down))
        return self._oracle.violations, reported

    def _up(self, down: Set[int]) -> set[str]:
        return {_name(node) for node in self._peers if node not in down}


def _name(node: int) -> str:
    return f"node {node}"


def _reader(node: int, topic: str) -> str:
    return f"node {node}/{topic}"
