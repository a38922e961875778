"""Diaries of simulated runs: what live nodes would have written, had they done the same."""

from __future__ import annotations

import math
from collections.abc import Callable
from pathlib import Path

from grapevine.model.ids import ring_id
from grapevine.net.diary import Diary
from grapevine.systems.contracts.peer import Address
from tests.peer_world import WatchedRun

EPOCH_US = 1_700_000_000_000_000
_FROM_BEHIND = {"fan", "child", "reverse"}  # links that the other end chose


def address_of(node: Address) -> int:
    """64 bits, in the order of the nodes."""
    return (node + 1) << 58


def topic_name(topic: int) -> str:
    return f"topic {topic}"


def topic_id(topic: int) -> int:
    return ring_id(topic_name(topic))


class Writing:
    """Diaries of many nodes, kept at times of the caller's choosing."""

    def __init__(self, folder: Path) -> None:
        self._folder, self._now, self._diaries = folder, 0.0, dict[Address, Diary]()

    def at(self, now: float, node: Address) -> Diary:
        self._now = now
        if node not in self._diaries:
            self._diaries[node] = Diary(
                self._folder, address_of(node), clock_us=lambda: EPOCH_US + round(self._now * 1e6)
            )
        return self._diaries[node]

    def published(self, now: float, node: Address, topic: int, sequence: int) -> None:
        """An event of this node's, asked for at this time."""
        asked_us = EPOCH_US + round(now * 1e6)
        self.at(now, node).published(topic_id(topic), address_of(node), sequence, asked_us)

    def close(self) -> None:
        for diary in self._diaries.values():
            diary.close()


def write_diaries(run: WatchedRun, system: str, folder: Path) -> None:
    """All that a run's own diary has, by node; for those that crash, also a line when they do."""
    seen: set[tuple[Address, int, int]] = set()
    done: list[tuple[float, Callable[[], None]]] = []
    writing, diary, workload = Writing(folder), run.diary, run.workload
    publishers, nodes, end = run.publishers, range(workload.node_count), run.clock.end_s

    def start(now: float, node: Address) -> None:
        writing.at(now, node).session(system, {"seed": run.seed, "me": node})
        for topic in workload.topics_of(node).tolist():
            writing.at(now, node).subscribed(topic_id(topic), topic_name(topic))

    def publish(now: float, topic: int, sequence: int) -> None:
        node = publishers[topic]
        seen.add((node, topic, sequence))
        writing.published(now, node, topic, sequence)

    def receive(now: float, node: Address, sender: Address, topic: int, sequence: int) -> None:
        key = node, topic, sequence
        writing.at(now, node).received(
            topic_id(topic),
            address_of(publishers[topic]),
            sequence,
            address_of(sender),
            wanted=topic in workload.topics_of(node),
            again=key in seen,
        )
        seen.add(key)

    def deliver(now: float, node: Address, sender: Address, topic: int, sequence: int, pulled: bool) -> None:
        event = topic_id(topic), address_of(publishers[topic]), sequence
        writing.at(now, node).delivered(*event, address_of(sender), pulled=pulled)

    def traffic(now: float, node: Address) -> None:
        counts = {"messages_in": run.engine.got[node], "messages_out": run.engine.sent[node]}
        writing.at(now, node).traffic({"Any": counts["messages_out"]}, **counts, bytes_in=0, bytes_out=7)

    def finish(node: Address) -> None:
        roles = run.system.neighbours(run.engine.peers[node])
        chosen = [(address_of(other), kind) for other, kinds in roles.items() for kind in {*kinds} - _FROM_BEHIND]
        writing.at(end, node).links(chosen, len(roles))
        traffic(end, node)
        writing.at(end, node).end()

    done += [(now, lambda n=now, w=node: start(n, w)) for now, node, _ in diary.started if node in nodes]  # type: ignore[misc]
    done += [(now, lambda n=now, w=node: traffic(n, w)) for now, node in diary.gone if node in nodes]  # type: ignore[misc]
    counts: dict[int, int] = {}
    for now, topic in diary.published:
        counts[topic] = counts.get(topic, 0) + 1
        done.append((now, lambda n=now, t=topic, s=counts[topic]: publish(n, t, s)))  # type: ignore[misc]
    for now, node, sender, message in diary.received:
        event = message.topic, message.sequence
        done.append((now, lambda n=now, w=node, s=sender, e=event: receive(n, w, s, *e)))  # type: ignore[misc]
    for now, node, handed in diary.delivered:
        told = handed.sender, handed.topic, handed.sequence, handed.pulled
        done.append((now, lambda n=now, w=node, a=told: deliver(n, w, *a)))  # type: ignore[misc]
    for _, action in sorted(done, key=lambda entry: entry[0]):
        action()
    for node in sorted(diary.online(math.inf) & set(nodes)):
        finish(node)
    writing.close()
