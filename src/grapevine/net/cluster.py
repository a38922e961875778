"""A whole network on this machine: processes full of nodes, a workload, and events whose arrival is counted.

    async with Cluster.open(workload, ClusterConfig(processes=2), system="vitis") as cluster:
        await cluster.wait_until_connected()
        await cluster.publish(events=100, rate=20)
        await cluster.wait_until_delivered()
        print(cluster.summary()["hit_ratio"])

The cluster knows who subscribes to what and what was published; groups report what the applications of their nodes read
(`tally`). Groups can be killed and started again, on the same folders, while events are published.
"""

from __future__ import annotations

import asyncio
import contextlib
import secrets
import tempfile
import time
from collections.abc import AsyncIterator, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from random import Random
from typing import Any

from grapevine.model.errors import GrapevineError, UsageError
from grapevine.model.identity import PeerId
from grapevine.model.ids import ring_id
from grapevine.model.workload import Workload
from grapevine.net.cluster_config import ClusterConfig
from grapevine.net.cluster_report import Course, snapshot, summary
from grapevine.net.connectedness import Connectedness, connectedness
from grapevine.net.group import now_us
from grapevine.net.judge import READER, Judge
from grapevine.net.orders import (
    Exchanges,
    Look,
    NewNode,
    Open,
    Opened,
    Publish,
    Published,
    Report,
    Subscribe,
    Subscribed,
)
from grapevine.net.tally import Tally
from grapevine.net.worker import Worker

_OPEN_S = 300.0  # the first node may have to compile
_LOOK_S = 60.0
_LOOK_AGAIN_S = 0.25  # whether everything has come
_FIRST = 2**62  # numbers from here on are of events that begin a feed, and are not counted
_FEEDS = ("rappel",)  # systems in which every topic has one publisher, and its name


@dataclass(frozen=True, slots=True)
class Spot:
    """Where a group lives: the address of its nodes, and what its process is started by (`ip netns exec`, say)."""

    host: str = "127.0.0.1"
    prefix: tuple[str, ...] = ()


class Cluster:
    """A network that runs. Made by `Cluster.open`."""

    def __init__(
        self,
        workload: Workload,
        config: ClusterConfig,
        folder: Path,
        open_: Open,
        data: Path | None,
        spots: Sequence[Spot],
        judge: Judge | None,
    ) -> None:
        self.workload, self.config = workload, config
        self.tally, self.judge = Tally(workload.subscribers_of), judge
        self.down: set[int] = set()
        self._course = Course()
        self._open, self._data, self._random = open_, data, Random(0)
        groups = min(config.processes, workload.node_count)
        self._members = [list(range(g, workload.node_count, groups)) for g in range(groups)]
        self._spots = [spots[g % len(spots)] for g in range(groups)]
        (folder / "logs").mkdir(parents=True, exist_ok=True)
        self.workers = [
            Worker(
                g,
                folder / "logs" / f"group-{g}.log",
                report=self._on_report,
                published=self._on_published,
                ended=self._on_ended,
                prefix=self._spots[g].prefix,
            )
            for g in range(groups)
        ]
        self._peers: dict[int, PeerId] = {}
        self._endpoints: dict[int, str] = {}
        self._bootstraps: list[int] = list(range(min(config.bootstraps, groups)))  # each in another group
        self._feeds: dict[int, int] = {}  # the publisher of a topic, where there is only one

    @classmethod
    @contextlib.asynccontextmanager
    async def open(
        cls,
        workload: Workload,
        config: ClusterConfig,
        *,
        system: str = "vitis",
        parameters: Mapping[str, Any] | None = None,
        settings: Mapping[str, Any] | None = None,
        data: Path | None = None,
        out: Path | None = None,
        seed: int = 1,
        spots: Sequence[Spot] = (Spot(),),
        judge: Judge | None = None,
        started: bool = True,
    ) -> AsyncIterator[Cluster]:
        """All nodes, up and subscribed; none is left behind. `data` keeps their folders, `out` gets their diaries.

        Groups are dealt to the spots in turn. With a `judge` applications read under a name, and it is told of all that
        they are given. Who wants to watch how they come up takes a cluster that is not
        `started`, and calls `start`.
        """
        with tempfile.TemporaryDirectory(prefix="grapevine-cluster-") as scratch:
            diary = None if out is None else str((out / "diaries").absolute())
            network = f"cluster-{secrets.token_hex(4)}"
            ordered = Open([], system, network, dict(parameters or {}), dict(settings or {}), diary)
            cluster = cls(workload, config, out or Path(scratch), ordered, data, spots, judge)
            cluster._random = Random(seed)
            try:
                if started:
                    await cluster.start()
                yield cluster
            finally:
                await cluster._close()

    async def start(self) -> None:
        """Open all nodes, and let them subscribe. Called once."""
        first = self._bootstraps
        await self.workers[0].start()
        for number in first:  # one after the other: the first compiles what all of them use
            if number:
                await self.workers[number].start()
            await self._open_nodes(number, [number])
        for worker in self.workers[len(first) :]:
            await worker.start()
        await asyncio.gather(
            *(self._open_nodes(g, [n for n in members if n not in first]) for g, members in enumerate(self._members))
        )
        if self._open.system in _FEEDS:
            self._choose_publishers()
        await asyncio.gather(*(self._subscribe(g, again=False) for g in range(len(self.workers))))
        for topic, publisher in self._feeds.items():  # a feed can be joined once something was published in it
            self._order(Publish(publisher, self.topic_name(topic), _FIRST + topic, self.config.payload, timeout=0.0))
        self._course.reach("up", stage="connecting")

    async def _close(self) -> None:
        try:
            await asyncio.gather(*(worker.stop() for worker in self.workers))
        finally:
            for worker in self.workers:
                worker.kill_now()

    async def _open_nodes(self, group: int, numbers: Iterable[int]) -> None:
        known = [self._endpoints[n] for n in self._bootstraps if n in self._endpoints]
        new = [
            NewNode(
                n,
                self._endpoints.get(n, f"{self._spots[group].host}:0"),
                known,
                None if self._data is None else str(self.folder_of(self._data, n)),
            )
            for n in numbers
        ]
        order = Open(
            new,
            self._open.system,
            self._open.network,
            self._open.parameters,
            self._open.settings,
            self._open.diary,
        )
        for number, peer, endpoint in (await self.workers[group].ask(order, Opened, _OPEN_S)).nodes:
            self._peers[number], self._endpoints[number] = PeerId.parse(peer), endpoint
            if self.judge is not None:
                self.judge.on_opened(number, self._peers[number])

    @staticmethod
    def folder_of(data: Path, node: int) -> Path:
        """Where a node keeps what it has, if nodes have folders in `data`."""
        return data.absolute() / f"node-{node:04d}"

    async def _subscribe(self, group: int, *, again: bool) -> None:
        topics = {n: [self.topic_name(t) for t in self.workload.topics_of(n)] for n in self._members[group]}
        reader = None if self.judge is None else READER
        await self.workers[group].ask(Subscribe(topics, again, reader), Subscribed, _OPEN_S)
        if self.judge is not None:
            self.judge.on_subscribed(topics)

    def _choose_publishers(self) -> None:
        for topic in range(self.workload.topic_count):
            given, subscribers = int(self.workload.publishers[topic]), self.workload.subscribers_of(topic)
            if given >= 0 or len(subscribers):
                self._feeds[topic] = given if given >= 0 else int(self._random.choice(subscribers))

    def topic_name(self, topic: int) -> str:
        """As nodes call it; a feed is called after its publisher."""
        name = self.workload.topic_names[topic]
        return f"{self._peers[self._feeds[topic]]}/{name}" if topic in self._feeds else name

    # What groups say

    def _on_report(self, worker: Worker, report: Report) -> None:
        self._course.late(report.late_s)
        found = report.arrivals
        for at in range(0, len(found), 3):
            if found[at] < _FIRST:
                self.tally.arrived(found[at], found[at + 1], found[at + 2], worker.session)
        if self.judge is not None:
            for given in report.given:
                self.judge.on_given(worker.session, given)

    def _on_published(self, answer: Published) -> None:
        if answer.event < _FIRST:
            self.tally.confirmed(answer.event, answer.time_us, answer.error, is_kept=answer.is_kept)
        if self.judge is not None:
            self.judge.on_published(answer)

    def _on_ended(self, worker: Worker) -> None:
        members = set(self._members[worker.number])
        self.down |= members
        self.tally.abandon(members)
        self._course.lost_groups += not worker.expected_to_end
        if worker.last is not None:
            self._course.ended += worker.last
            worker.last = None

    # What can be done with it

    async def wait_until_connected(self, timeout: float | None = None) -> None:
        """Wait until the subscribers of every topic are connected by those with whom they exchange its events.

        GrapevineError if that takes longer than `timeout` (by default `ready_s`): whoever publishes in a network that
        has not come together measures how it comes together, and loses events to nobody's fault.
        """
        patience = self.config.ready_s if timeout is None else timeout
        end = time.monotonic() + patience
        while True:
            found = await self._look()
            self._course.connected = found.share
            if found.is_whole:
                self._course.reach("ready")
                return
            if time.monotonic() >= end:
                raise GrapevineError(
                    f"after {patience:g} s the subscribers of {found.connected:,} of {found.shared:,} topics were"
                    " connected, so nothing was published; give a longer --ready-s, or fewer nodes for this machine"
                )
            await asyncio.sleep(1.0)

    async def publish(self, events: int | None = None, rate: float | None = None) -> None:
        """Let random subscribers publish in random topics, at an even pace."""
        self._course.begin_publishing(self.workers)
        topics = [t for t in range(self.workload.topic_count) if len(self.workload.subscribers_of(t)) > 1]
        if not topics:
            raise UsageError("no topic has two subscribers; give fewer topics, or more subscriptions")
        begun, pace = time.monotonic(), rate or self.config.rate
        for i in range(events or self.config.events):
            await asyncio.sleep(max(0.0, begun + i / pace - time.monotonic()))
            self.publish_one(self._random.choice(topics))
        self._course.reach("published")

    def publish_one(self, topic: int, publisher: int | None = None) -> int | None:
        """One event; None if everybody who could publish it is down."""
        if publisher is None:
            feed = self._feeds.get(topic)
            able = [int(n) for n in self.workload.subscribers_of(topic)] if feed is None else [feed]
            able = [n for n in able if n not in self.down]
            if not able:
                self._course.skipped += 1
                return None
            publisher = self._random.choice(able)
        event = self._course.events = self._course.events + 1
        self.tally.ordered(event, topic, publisher)
        self._order(Publish(publisher, self.topic_name(topic), event, self.config.payload))
        return event

    def _order(self, order: Publish) -> None:
        if self.judge is not None:
            self.judge.on_ordered(order.event, order.node, order.topic)
        self.workers[order.node % len(self.workers)].tell(order)

    async def wait_until_delivered(self, timeout: float | None = None) -> bool:
        """Wait until every confirmed event has come to every subscriber that is up; False if it takes longer.

        Where there is a judge, a gap that a reader was told of is as good: nothing more comes.
        """
        self._course.stage = "waiting"
        end = time.monotonic() + (self.config.settle_s if timeout is None else timeout)
        while not (is_complete := self._is_complete()) and time.monotonic() < end:
            await asyncio.sleep(_LOOK_AGAIN_S)
        self._course.reach("over")
        return is_complete

    def _is_complete(self) -> bool:
        if self.tally.waiting:
            return False
        found, expected = self.tally.delivered(self.down)
        return found == expected or (self.judge is not None and not self.judge.is_waiting(self.down))

    async def kill(self, group: int) -> None:
        """End the group's process as a crash would: nothing is written, nobody is told."""
        await self.workers[group].kill()

    async def stop(self, group: int) -> None:
        """Let the group's nodes leave in good order, and end its process."""
        await self.workers[group].stop()

    async def restart(self, group: int) -> None:
        """Start a group again, on its nodes' folders; its nodes then have to get what they missed."""
        if self._data is None:
            raise UsageError("nodes without folders cannot come back; give --data DIR")
        if self.workers[group].is_up:
            raise UsageError(f"group {group} runs; kill or stop it first")
        members = set(self._members[group])
        self.tally.fault_over(members, now_us())
        await self.workers[group].start()
        await self._open_nodes(group, self._members[group])
        await self._subscribe(group, again=True)
        self.down -= members

    def on_fault_over(self, nodes: Iterable[int] | None = None) -> None:
        """What kept these nodes (None: all) from what they are owed has ended; how long they take is measured."""
        members = range(self.workload.node_count) if nodes is None else nodes
        self.tally.fault_over(set(members) - self.down, now_us())

    def groups_for(self, share: float) -> list[int]:
        """The last groups, as many as have that share of the nodes; at least one of several stays."""
        count = round(share * len(self.workers))
        return list(range(len(self.workers) - min(max(count, 1), len(self.workers) - 1), len(self.workers)))

    async def _look(self) -> Connectedness:
        looks = await asyncio.gather(*(w.ask(Look(), Exchanges, _LOOK_S) for w in self.workers if w.is_up))
        partners = [row for look in looks for row in look.partners]
        wanted = {}
        for topic in range(self.workload.topic_count):
            here = [self._peers[int(n)].address for n in self.workload.subscribers_of(topic) if n not in self.down]
            wanted[ring_id(f"topic:{self.topic_name(topic)}")] = here
        return connectedness(wanted, partners)

    # What it tells

    def snapshot(self) -> dict[str, Any]:
        """How things stand now (`cluster_report`)."""
        wanted = {"nodes_wanted": self.workload.node_count, "events_wanted": self.config.events}
        return snapshot(self._course, self.workers, self.tally, self.down) | wanted

    def summary(self) -> dict[str, Any]:
        """What was measured, from the first event to the last delivery (`cluster_report`)."""
        about = {
            "system": self._open.system,
            "topics": self.workload.topic_count,
            "subscriptions": self.workload.subscription_count,
        }
        return summary(about, self._course, self.workers, self.tally, self.down)
