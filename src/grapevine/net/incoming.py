"""What comes over a node's connections, and who deals with it: events, recovery, or the peer itself."""

from __future__ import annotations

from typing import Any

from grapevine.net.arrivals import Arrivals
from grapevine.net.chronicle import Chronicle
from grapevine.net.confirmations import Confirmations
from grapevine.net.connection import Connection
from grapevine.net.host import Host
from grapevine.net.ledger import Ledger
from grapevine.net.messages import Confirm, Confirmed, Digest, Evidence, Holdings, Kept, Want
from grapevine.net.recovery import Recovery
from grapevine.net.serving import Serving
from grapevine.net.topics import Topics
from grapevine.systems.contracts.peer import Message


class Incoming:
    """Takes every message that is not about contacts (`Connections`), once the peer runs."""

    def __init__(
        self,
        host: Host,
        topics: Topics,
        ledger: Ledger,
        arrivals: Arrivals,
        recovery: Recovery,
        serving: Serving,
        confirmations: Confirmations,
        chronicle: Chronicle,
    ) -> None:
        self._host, self._topics, self._ledger, self._confirmations = host, topics, ledger, confirmations
        self._arrivals, self._recovery, self._serving, self._chronicle = arrivals, recovery, serving, chronicle

    def receive(self, connection: Connection, message: Message) -> None:
        """One message. Whatever it holds, nothing is raised: its sender is blamed, or we have failed and count that."""
        if not self._host.is_running:
            return
        if message.carries_event:
            self._on_event(connection, message)
        elif isinstance(message, Digest):
            self._recovery.on_digest(connection, message)
        elif isinstance(message, Holdings):
            self._recovery.on_holdings(connection, message)
        elif isinstance(message, Want):
            self._serving.on_want(connection, message)
        elif isinstance(message, Kept):
            self._recovery.on_kept(connection, message)
        elif isinstance(message, Evidence):
            self._arrivals.witness.on_evidence(connection, message)
        elif isinstance(message, Confirm):
            self._confirmations.on_confirm(connection, message)
        elif isinstance(message, Confirmed):
            self._confirmations.on_confirmed(connection, message)
        else:
            self._host.on_message(connection.address, message)

    def _on_event(self, connection: Connection, message: Any) -> None:
        """An event that is pushed: kept if this node wants or carries its topic, and passed on by the peer."""
        event = self._arrivals.check(connection, message)
        if event is None:
            return
        is_own = event.publisher == self._arrivals.me
        again = is_own or self._ledger.has(event.topic, event.source, event.sequence)
        wanted = self._topics.is_wanted(event.topic)
        self._chronicle.on_received(event, connection.address, wanted=wanted, again=again)
        self._host.on_message(connection.address, message)
        if not again and self._arrivals.accept(event, connection.address, pulled=False):
            self._recovery.on_news(connection, event.topic, event.source)
