"""A machine with one node on it, and the applications of that: started, crashed, left, and started again.

The folder, the wall clock, the disk and the readers' places belong to the machine, and outlive the node's sessions.
"""

from __future__ import annotations

import asyncio
import shutil
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from random import Random
from typing import Any

from grapevine.model.errors import GrapevineError
from grapevine.model.identity import key_from
from grapevine.net.config import NodeConfig
from grapevine.net.data_folder import CONTACTS_FILE, LOCK_FILE
from grapevine.net.node import Node
from grapevine.net.publishing import NoPath
from grapevine.net.surroundings import Surroundings
from grapevine.net.torture.disk import DiskHealth, SimulatedDisk
from grapevine.net.torture.loop import Process, VirtualLoop
from grapevine.net.torture.network import Network
from grapevine.net.torture.oracle import Oracle
from grapevine.net.torture.reader import DurableReader, LiveReader, Pace
from grapevine.net.torture.schedule import Publish
from grapevine.net.torture.simulated_transport import transport_of
from grapevine.net.torture.transcript import Transcript
from grapevine.net.torture.wall_clock import WallClock

PORT = 7_000
_START_AGAIN_S = 5.0  # after a start that failed, as a supervisor does
_LEAVE_S = 60.0  # in which a node must have closed


@dataclass(frozen=True, slots=True)
class World:
    """What all machines of a run share."""

    seed: int
    loop: VirtualLoop
    network: Network
    oracle: Oracle
    transcript: Transcript
    folder: Path
    bootstrap: tuple[str, ...]
    parameters: dict[str, Any]
    settings: dict[str, Any]


@dataclass(frozen=True, slots=True)
class Backup:
    """A copy of a machine's folder."""

    folder: Path
    at_s: float


def host_of(number: int) -> str:
    """The address of a machine."""
    return f"10.0.{number // 250}.{number % 250 + 1}"


class Machine:
    """One machine, off at first."""

    def __init__(self, world: World, number: int, interests: tuple[str, ...], live: tuple[str, ...]) -> None:
        self.name, self.host = f"node {number}", host_of(number)
        self.clock = WallClock(world.loop.time)
        self.disk = DiskHealth(Random(f"disk {world.seed} {number}"))
        self.make_disk: Callable[[DiskHealth], SimulatedDisk] = SimulatedDisk  # a test may give it a worse one
        self.pace = Pace()
        self.node: Node | None = None  # while it is open
        self.totals: Counter[str] = Counter()  # of its nodes' sessions that are over
        self.up_s = 0.0  # likewise
        self.world, self._number = world, number
        self.readers = {topic: DurableReader(self.name, topic, world.oracle, self.pace) for topic in interests}
        ordered = number % 2 == 0
        self._live = [LiveReader(self.name, topic, world.oracle, self.pace, ordered=ordered) for topic in live]
        self._boots, self._backups = 1, 0
        self._reading: dict[str, asyncio.Task[None]] = {}  # by topic of durable readers
        self._process: Process | None = None
        self._session: asyncio.Task[None] | None = None
        self._work: SimulatedDisk | None = None
        self._leaving = asyncio.Event()
        self._since_s = 0.0

    @property
    def is_on(self) -> bool:
        """Whether a node runs here, or is being started or closed."""
        return self._session is not None and not self._session.done()

    # Coming and going

    def start(self) -> None:
        """Power on, and start the node, unless it runs."""
        if self.is_on:
            return
        self.world.network.down.discard(self.host)
        self._leaving.clear()
        self._since_s = self.world.loop.time()
        self._process = Process(self.name)
        self._session = self.world.loop.create_task(self._live_on(), context=self._process.context())

    def crash(self, *, power: bool) -> None:
        """The process, or the whole machine, is gone in the middle of whatever it did."""
        if self._process is None or not self.is_on:
            return
        contacts = self.world.folder / self.host / CONTACTS_FILE
        before = contacts.read_bytes() if contacts.exists() else None
        self._process.is_dead = True
        self._boots += power
        self.world.network.on_crash(self.host, self._process, power=power)
        if self._work is not None:
            self._work.kill()
        self._note_totals()
        self.world.loop.kill(self._process)
        if before is not None:  # what Python runs of a dead process must leave no trace
            contacts.write_bytes(before)
        (self.world.folder / self.host / LOCK_FILE).unlink(missing_ok=True)  # the dead hold no locks
        self._session = None

    def back_up(self) -> Backup:
        """A copy of the folder as it is now, while the node runs."""
        self._backups += 1
        copy = self.world.folder / f"{self.host} {self._backups}"
        shutil.copytree(self.world.folder / self.host, copy)
        return Backup(copy, self.world.loop.time())

    def restore(self, backup: Backup) -> None:
        """The folder becomes what it was. The node must not run."""
        folder = self.world.folder / self.host
        shutil.rmtree(folder)
        shutil.copytree(backup.folder, folder)
        self.world.oracle.on_restored(self.name, backup.at_s)
        self.world.transcript.say(self.name, f"has its folder of {backup.at_s:.3f} s again")

    async def leave(self) -> None:
        """The node closes in good order."""
        session = self._session
        if session is None or not self.is_on:
            return
        self._leaving.set()
        _, late = await asyncio.wait([session], timeout=_LEAVE_S)
        if late and not self._process_is_dead():
            self.world.oracle.blame("sound", f"{self.name} did not close within {_LEAVE_S:g} s")

    def _process_is_dead(self) -> bool:
        return self._process is None or self._process.is_dead

    async def _live_on(self) -> None:
        """One session of the machine: the node is opened, again if that fails, and closed when it is to leave."""
        while not self._leaving.is_set():
            try:
                async with self._opened() as node:
                    await self._use(node)
                return
            except GrapevineError as error:
                self.world.transcript.say(self.name, f"does not start: {error}".replace(str(self.world.folder), ""))
                await asyncio.sleep(_START_AGAIN_S)

    def _opened(self) -> Any:
        assert self._process is not None
        world = self.world
        return Node.open(
            f"{self.host}:{PORT}",
            [endpoint for endpoint in world.bootstrap if endpoint != f"{self.host}:{PORT}"],
            data_dir=world.folder / self.host,
            transport=transport_of(world.network, self.host, self._process),
            surroundings=Surroundings(
                self.clock.now_us,
                partial(key_from, f"torture {world.seed} {self._number}"),
                self._make_disk,
                _inline,
                lambda: f"boot {self._boots}",
            ),
            parameters=world.parameters,
            **NodeConfig(**world.settings).as_dict(),
        )

    def _make_disk(self) -> SimulatedDisk:
        self._work = self.make_disk(self.disk)
        return self._work

    async def _use(self, node: Node) -> None:
        self.node = node
        self.world.oracle.on_node(self.name, node.id.full)
        self.world.transcript.say(self.name, f"is up as {node.id.short}")
        self._reading = {}
        for topic in self.readers:
            self.read(topic)
        reading = [asyncio.create_task(_quietly(reader, node)) for reader in self._live]
        await self._leaving.wait()
        for task in (*self._reading.values(), *reading):
            task.cancel()
        await asyncio.gather(*self._reading.values(), *reading, return_exceptions=True)
        self._note_totals()

    def _note_totals(self) -> None:
        """A session ends: keep what its node counted."""
        self.up_s += self.world.loop.time() - self._since_s
        self.totals += self._counted()
        self.node = None

    def _counted(self) -> Counter[str]:
        if self.node is None:
            return Counter()
        stats = self.node.stats()
        for failure, times in stats["failures"].items():
            self.world.oracle.blame("sound", f"{self.name}: {failure}, {times} times")
        return Counter({name: stats[name] for name in ("delivered", "recovered", "given_up", "published")})

    def all_totals(self) -> Counter[str]:
        """What its nodes counted in all sessions."""
        return self.totals + self._counted()

    # Applications

    def read(self, topic: str) -> None:
        """A durable reader begins, or goes on."""
        if self.node is not None and (topic not in self._reading or self._reading[topic].done()):
            assert self._process is not None
            reader = self.readers[topic]
            self._reading[topic] = self.world.loop.create_task(
                _quietly(reader, self.node), context=self._process.context()
            )

    async def stop_reading(self, topic: str) -> bool:
        """A durable reader unsubscribes; False if there is none that could."""
        node = self.node
        if node is None or topic in (reader.topic for reader in self._live) or topic not in self._reading:
            return False
        self._reading.pop(topic).cancel()
        await self._run(self.readers[topic].unsubscribe(node))
        return True

    def publish(self, publication: Publish) -> None:
        """An application publishes, if the node is up."""
        if self.node is not None:
            self._run(self._publish(self.node, publication))

    async def _publish(self, node: Node, publication: Publish) -> None:
        oracle, transcript, payload = self.world.oracle, self.world.transcript, publication.payload
        oracle.on_publish(self.name, publication.topic, payload, self.world.loop.time())
        try:
            event = await node.publish(publication.topic, payload)
        except NoPath:
            oracle.on_acknowledged(payload, None)
            transcript.say(self.name, f"published {payload.decode()} in {publication.topic}, without a path")
        except GrapevineError as error:
            oracle.on_refused(payload)
            transcript.say(self.name, f"could not publish {payload.decode()}: {type(error).__name__}")
        else:
            oracle.on_acknowledged(payload, event)
            transcript.say(self.name, f"published {payload.decode()} in {publication.topic} as number {event.sequence}")

    def _run(self, coroutine: Any) -> asyncio.Task[None]:
        """A task of the node's process, which ends with that."""
        assert self._process is not None
        return self.world.loop.create_task(coroutine, context=self._process.context())

    async def behind(self) -> list[str]:
        """Sentences about live readers that were not given what the store has."""
        if self.node is None:
            return []
        found = [(reader.name, await reader.behind(self.node)) for reader in self._live]
        return [f"{name} was not given numbers {numbers[:10]} that its store has" for name, numbers in found if numbers]


async def _inline(work: Any) -> Any:
    return work()


async def _quietly(reader: DurableReader | LiveReader, node: Node) -> None:
    """Read. A reader whose node closes under it ends."""
    try:
        await reader.read(node)
    except GrapevineError:
        return
