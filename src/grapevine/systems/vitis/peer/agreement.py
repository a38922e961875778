"""How neighbours agree on gateways: each tells what is new in its proposals, and elects from what it heard."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

import numpy as np

from grapevine.systems.contracts.peer import Address
from grapevine.systems.vitis.peer.elections import Elections, Member
from grapevine.systems.vitis.peer.interests import Interests
from grapevine.systems.vitis.peer.messages import Descriptor, Heartbeat, Topics
from grapevine.systems.vitis.peer.profiles import Shelf
from grapevine.systems.vitis.peer.proposals import Heard, Tellings
from grapevine.systems.vitis.peer.relays import Keys

_NOTHING: Topics = np.empty(0, np.uint64)


class Agreement:
    """One node's part in it, in one session."""

    def __init__(self, elections: Elections, interests: Interests, shelf: Shelf, keys: Keys, session: int) -> None:
        self.elections, self._interests, self._shelf, self._keys = elections, interests, shelf, keys
        self._tellings = Tellings(session)
        self._heard: dict[Address, Heard] = {}  # what neighbours propose

    def heard_from(self, node: Address) -> Heard:
        """What a neighbour proposes."""
        if node not in self._heard:
            self._heard[node] = Heard()
        return self._heard[node]

    def elect(self, neighbours: Mapping[Address, int]) -> None:
        """Algorithm 5, from what neighbours (and their ring ids) who share the topics proposed last."""
        self._tellings.keep(neighbours)
        self._heard = {node: heard for node, heard in self._heard.items() if node in neighbours}
        own, elections = self._interests.array(), self.elections
        if own is not elections.topics:
            elections.want(own, self._keys(own))
            for heard in self._heard.values():
                heard.keep(own)
        places = self._shelf.places
        elections.meet({n: Member(ring_id, places(n), self.heard_from(n)) for n, ring_id in neighbours.items()})
        elections.elect()

    def heartbeats(self, node: Address, me: Descriptor, link: bool) -> Iterator[Heartbeat]:
        """Algorithm 6: what the neighbour does not know yet, once a turn."""
        interests, tellings = self._interests, self._tellings
        stamp, version, again = tellings.progress(node)
        news, stamp = self.elections.news(self._shelf.places(node), stamp, again)
        changes = interests.changes_since(version)
        withdrawn = self._shelf.shared(node, changes[1]) if changes else _NOTHING
        repeat = self.heard_from(node).must_repeat()
        for told in tellings.tell(node, news, withdrawn, stamp, interests.version):
            yield Heartbeat(me, link, repeat, tellings.session, *told)

    def hear(self, sender: Address, message: Heartbeat) -> None:
        """A neighbour's heartbeat came."""
        self.elections.mark(self.heard_from(sender).take(message, self._interests))
        if message.repeat:
            self._tellings.repeat(sender)

    def tell_again(self, node: Address, topics: Topics | None) -> None:
        """The node's profile is another: it may have dropped what it was told of these topics; None: of any."""
        self._tellings.repeat(node, topics)

    def forget(self, node: Address) -> None:
        """It is gone."""
        self._heard.pop(node, None)
