"""Where peers are to be found, learnt from other peers.

Protocols name peers by address alone. So a message that names nodes travels behind their signed contacts (`Introduce`),
sent once per connection and record. Whoever has an address and no contact asks a few of those it is connected to
(`Seek`). A contact that its owner did not sign is blamed on whoever passed it on.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable

from grapevine.model.errors import PeerError
from grapevine.net.conduct import FORGED
from grapevine.net.connection import Connection
from grapevine.net.contacts import Contact, Contacts
from grapevine.net.messages import Introduce, Seek
from grapevine.systems.contracts.peer import Address

_ASKED = 3  # peers that are asked where another is
_MOST_CONTACTS = 64  # in one message; more that come in one are ignored
_ANSWER_S = 1.0


class Introductions:
    """Sends, takes and asks for contacts on behalf of all connections of a node."""

    def __init__(self, contacts: Contacts, blame: Callable[[Connection, str, int, PeerError], None]) -> None:
        self._contacts, self._blame = contacts, blame
        self._sought: dict[Address, asyncio.Future[None]] = {}

    def send_before(self, connection: Connection, named: Iterable[Address]) -> None:
        """Send the contacts of nodes that the next message names, unless this connection has carried them before."""
        known = [self._contacts.find(node) for node in dict.fromkeys(named)]
        news = [
            contact
            for contact in known
            if contact is not None and connection.introduce(contact.id.address, contact.time_ms)
        ]
        for at in range(0, len(news), _MOST_CONTACTS):
            connection.send(Introduce(tuple(news[at : at + _MOST_CONTACTS])))

    def on_introduce(self, connection: Connection, message: Introduce) -> None:
        """Learn contacts, up to the first forged one, for which the sender is blamed."""
        for contact in message.contacts[:_MOST_CONTACTS]:
            try:
                owner = self._contacts.learn(contact)
            except PeerError as error:
                self._blame(connection, "forged", FORGED, error)
                return
            waiting = self._sought.pop(owner.address, None)
            if waiting is not None and not waiting.done():
                waiting.set_result(None)

    def on_seek(self, connection: Connection, message: Seek) -> None:
        """Answer with the contact, if it is known; otherwise not at all."""
        found = self._contacts.find(message.node)
        if found is not None:
            connection.send(Introduce((found,)))

    async def locate(self, address: Address, connections: list[Connection]) -> Contact | None:
        """The contact of a peer; a few of these connections are asked if need be, for a second at most."""
        if self._contacts.find(address) is None and connections:
            found = self._sought.setdefault(address, asyncio.get_running_loop().create_future())
            for connection in connections[:_ASKED]:
                connection.send(Seek(address))
            try:
                await asyncio.wait_for(asyncio.shield(found), _ANSWER_S)
            except TimeoutError:
                self._sought.pop(address, None)
        return self._contacts.find(address)
