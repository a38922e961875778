"""A node's parts, put together, and started and stopped in the right order. Each part's module says what it does.

From below: `connections` has the bytes, `host` drives the peer, `topics` says what the node has to do with which topic,
`ledger` and `recovery` bring back what was missed, `arrivals` takes events to the disk and to readers, `publishing`
brings the node's own to the overlay. `Node` is the front that applications use.
"""

from __future__ import annotations

import asyncio
import logging
from random import Random

from grapevine.model.errors import GrapevineError
from grapevine.net.arrivals import Arrivals
from grapevine.net.chronicle import Chronicle
from grapevine.net.config import NodeConfig
from grapevine.net.confirmations import ASK_S, Confirmations
from grapevine.net.connections import Connections
from grapevine.net.data_folder import DataFolder
from grapevine.net.diary import Diary
from grapevine.net.health import Health
from grapevine.net.host import Host
from grapevine.net.housekeeping import Chore, keep_house
from grapevine.net.incoming import Incoming
from grapevine.net.ledger import Ledger
from grapevine.net.live_system import messages_of
from grapevine.net.publishing import Publishing
from grapevine.net.recovery import Recovery
from grapevine.net.reunion import Reunion
from grapevine.net.serving import Serving
from grapevine.net.stamp import publisher_of
from grapevine.net.surroundings import REAL_WORLD, Surroundings
from grapevine.net.topics import Topics
from grapevine.net.transport import Endpoint, MakeTransport
from grapevine.net.witness import Witness
from grapevine.systems.contracts.live import LiveSystem

_log = logging.getLogger(__name__)
_LEAVE_S = 2.0  # for a peer to leave in good order


class Assembly:
    """All parts of one node, for one session: made, then `start`, then `close`."""

    def __init__(
        self,
        folder: DataFolder,
        system: LiveSystem,
        config: NodeConfig,
        *,
        network: str,
        transport: MakeTransport,
        diary: Diary | None,
        surroundings: Surroundings = REAL_WORLD,
    ) -> None:
        self.config, self.endpoint, self.is_closing = config, ("", 0), False
        self.folder, self.system, self.store = folder, system, folder.store
        self.surroundings = surroundings
        passed_s = asyncio.get_running_loop().time
        self.clock = folder.clock
        self.health = Health(self, self.clock, passed_s)
        self._session = surroundings.clock_us()
        random = Random(self._session)
        self.chronicle = Chronicle(folder.identity.id, diary)
        self.connections = Connections(
            folder.identity,
            config,
            network=network,
            system=system.name,
            session=self._session,
            messages=messages_of(system),
            receive=lambda connection, message: self.incoming.receive(connection, message),
            unreachable=lambda address: self.host.on_unreachable(address),
            transport=transport,
            chosen=lambda: self.host.chosen(),
        )
        self.host = Host(system, self.connections)
        self.ledger = Ledger(config.gap_limit, self._on_lost)
        self.topics = Topics(config, self.store, self.ledger, self.host, self.chronicle, self.clock.now_ms)
        self.witness = Witness(self.ledger, self.store, self.connections)
        self.confirmations = Confirmations(
            self.topics, self.store, self.connections, lambda key: self.publishing.end_offer(key)
        )
        self.arrivals = Arrivals(
            *(config, system, self.connections, self.ledger, self.store, self.topics),
            *(self.witness, folder.epochs, self.clock.now_ms),
            on_kept=self.confirmations.on_kept,
        )
        self.recovery = Recovery(config, self.topics, self.ledger, self.connections, self.arrivals, random)
        self.serving = Serving(config, self.store, self.connections, self.clock.now_ms)
        self.incoming = Incoming(
            *(self.host, self.topics, self.ledger, self.arrivals, self.recovery, self.serving),
            *(self.confirmations, self.chronicle),
        )
        self.reunion = Reunion(self.connections, config.retry_s, self.host.meet, random)
        self.publishing = Publishing(
            *(folder.identity, system, config, self.store, self.topics, self.host, self.confirmations),
            folder.epochs,
            self._is_alone,
            surroundings.clock_us,
            self.clock.now_ms,
        )
        self.tasks: list[asyncio.Task[None]] = []

    async def start(self, at: Endpoint, announce: str | None, bootstrap: list[Endpoint]) -> None:
        """Load what the folder has, listen, start the peer, and begin what goes on by itself. UsageError if it cannot.

        Subscriptions are wanted before anybody connects, so that no event comes to a node that has forgotten its own.
        """
        self.reunion.endpoints = [endpoint for endpoint in bootstrap if endpoint != at]
        await self.witness.start()
        self.chronicle.on_start(self.system.name, self.system.config.as_dict())
        remembered = [contact.id.address for contact in self.folder.contacts(self.connections.contacts)]
        for name, since_ms in (await self.store.subscriptions()).items():
            self.recovery.resumed.add(self.system.topic(name))
            await self.topics.want(self.system.topic(name), name, since_ms)
        self.endpoint = await self.connections.listen(*at, announce, self.surroundings.clock_ms())
        if self.system.needs_contacts:
            await self.reunion.call_all()
        self.host.start([topic.id for topic in self.topics.wanted()], self._session)
        await self.publishing.rejoin()
        await self.publishing.resume_offers()
        for address in remembered:
            self.host.meet(address)
        works = (self.arrivals.keep(), keep_house(self._chores(), self.host.failures), self.reunion.run())
        self.tasks = [asyncio.create_task(work) for work in works]

    def _chores(self) -> list[Chore]:
        return [
            Chore(0.0, self.publishing.send_unsent),
            Chore(ASK_S, self.confirmations.ask),
            Chore(self.config.recover_every_s, self.topics.follow),
            Chore(self.config.recover_every_s, self.recovery.compare),
            Chore(1.0, self.connections.sweep),
            Chore(1.0, self.health.look),
            Chore(1.0, lambda: self.chronicle.write(self.host.peer, self.connections.traffic)),
            Chore(10.0, lambda: self.folder.remember(self.connections.contacts)),
            Chore(10.0, self.folder.note_clock),
            Chore(60.0, self.trim),
        ]

    async def close(self) -> None:
        """Tell readers and publishers, leave the overlay, say farewell, keep what came. Works after a failed start."""
        if self.is_closing:
            return
        self.is_closing = True
        self.topics.close()
        self.publishing.close()
        if self.host.is_running:
            self.chronicle.on_leaving(self.host.peer, self.connections.traffic)
            await self._leave()
        await self.connections.close("this node stops")
        await self.serving.close()
        await self.witness.close()
        await self.confirmations.close()
        if self.tasks:
            await self.arrivals.all_kept()
        for task in self.tasks:
            task.cancel()
        await asyncio.gather(*self.tasks, return_exceptions=True)
        self.folder.remember(self.connections.contacts)
        self.chronicle.close(self.connections.traffic)

    async def _leave(self) -> None:
        self.host.call(self.host.peer.leave)
        try:
            await asyncio.wait_for(self.host.finished.wait(), _LEAVE_S)
        except TimeoutError:
            _log.info("left without waiting for others any longer")
        self.host.stop()

    async def trim(self) -> None:
        """Remove events beyond the retention; a disk that refuses is logged."""
        try:
            await self.store.trim(self.clock.now_ms())
        except GrapevineError as error:
            _log.error("old events were not removed: %s", error)

    def _on_lost(self, topic_id: int, source: bytes, first: int, last: int) -> None:
        self.topics.on_lost(topic_id, source, first, last)

    # What `health` looks at

    @property
    def is_without_peers(self) -> bool:
        """Whether nobody is connected, although there are nodes to join."""
        return bool(self.reunion.endpoints) and not self.connections.open_connections

    @property
    def disk_trouble(self) -> str | None:
        """Why the disk refused the last change; None if it did not."""
        return self.store.trouble

    @property
    def is_full(self) -> bool:
        """Whether newcomers are turned away, because links have all places that are for others."""
        return self.connections.is_full

    @property
    def given_up(self) -> int:
        """Events that nobody had, since the node was opened."""
        return self.ledger.given_up

    @property
    def returned(self) -> int:
        """Events of this node's that others had and its folder had not."""
        return self.arrivals.returned

    @property
    def contradicting(self) -> list[str]:
        """Publishers that contradict themselves, in topics that this node kept, as people read them."""
        return sorted({publisher_of(source).short for _, source in self.witness.found})

    def topics_without_path(self) -> list[str]:
        """Names of topics that are wanted and have no way to others, while somebody is connected."""
        if not self.connections.open_connections:
            return []  # that is another condition
        return [topic.name for topic in self.topics.wanted() if not self.host.has_path(topic.id)]

    @property
    def is_busy(self) -> bool:
        """Whether something that was begun is not on the disk yet, or not on its way."""
        begun = self.publishing.is_awaited or self.arrivals.waiting
        return bool(begun or self.store.waiting or self.connections.unsent)

    def _is_alone(self) -> bool:
        """A network of one, for all it knows: nobody to join, nobody connected."""
        return not self.reunion.endpoints and not self.connections.open_connections
