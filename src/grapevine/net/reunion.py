"""Finding others: bootstrap nodes at first, and again when they are lost; now and then somebody from memory.

A network that fell apart comes together again so: each part goes on for itself, but its nodes remember whom they knew,
and one such acquaintance that answers is enough for the overlay to find the rest.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable
from random import Random

from grapevine.model.errors import PeerError
from grapevine.net.connections import Connections
from grapevine.net.transport import Endpoint
from grapevine.systems.contracts.peer import Address

_EVERY_S = 10.0  # between two attempts, for a node that has neighbours
_REMEMBERED = 200  # contacts, the last used ones, that are tried
_log = logging.getLogger(__name__)


class Reunion:
    """Calls endpoints, and introduces whoever answers to the peer (`meet`)."""

    def __init__(
        self, connections: Connections, retry_s: float, meet: Callable[[Address], None], random: Random
    ) -> None:
        self.endpoints: list[Endpoint] = []  # bootstrap nodes; the node adds those that it is told to join
        self._connections, self._retry_s, self._meet, self._random = connections, retry_s, meet, random

    async def call(self, host: str, port: int) -> None:
        """Begin with the node at this endpoint; PeerError if it cannot be reached."""
        self._meet((await self._connections.call(host, port)).address)

    async def call_all(self) -> None:
        """Call all endpoints to which there is no connection; who does not answer is logged and called next time."""
        for host, port in self.endpoints:
            if not self._connections.is_connected_to(host, port):
                try:
                    await self.call(host, port)
                except PeerError as error:
                    _log.info("bootstrap node %s:%s: %s", host, port, error)

    async def run(self) -> None:
        """For ever: call bootstrap nodes that are not connected, then meet a lost acquaintance; often while alone."""
        while True:
            await self.call_all()
            await asyncio.sleep(_EVERY_S if self._connections.open_connections else self._retry_s)
            remembered = (contact.id.address for contact in self._connections.contacts.latest(_REMEMBERED))
            lost = [node for node in remembered if self._connections.connection(node) is None]
            if lost:
                self._meet(self._random.choice(lost))
