"""How neighbours agree on gateways: each sends what is new in its proposals, and elects from what came.

A topic's gateway is meant to be the member of the cluster nearest to the topic's id; it keeps the path to the
rendezvous. Nobody counts votes. Every member proposes somebody: itself, or the best of what its neighbours propose that
is fewer than d hops away (Algorithm 5), and a proposal spreads as far as it wins. Where paths are longer than d, or
while things change, a cluster has several gateways, which costs traffic and loses nothing.

What a node proposes is thus a function of two inputs: which neighbours share the topic, and what they propose. With
100,000 topics neither choosing nor sending all of them in every round is possible, so both are done by changes. That
has to come to the same as doing all, and does because of three invariants:

1. **Choices are up to date or marked** (`elections`). Whoever changes an input of a topic marks it: a neighbour that
   comes, goes or has other topics, and a proposal that differs from the last. A topic that is not marked is one for
   which Algorithm 5 would choose what it chose. Marks are worked off in a bounded number per round; when none are left
   anywhere, all proposals are a fixpoint of Algorithm 5.

2. **The receiver knows what the sender proposes, or knows that it does not** (`proposals`). Every change has a stamp,
   and for every neighbour the sender keeps the stamp up to which it has sent. Heartbeats have serials without gaps.
   From `complete_from` on they carried all proposals once, then all changes. So a receiver that has every serial from
   there on has the sender's proposals as of the last one; only of very many changes some wait for the next rounds, the
   latest longest. If it lacks one, the next heartbeat shows the gap, at the latest a round later, since there is one in
   every round; it asks for a repeat, and the sender begins anew with a higher `complete_from`, before which nothing
   counts. No single message has to arrive for this to be right, only some in the end.

3. **Order does not matter.** A record remembers the serial that brought it, and is changed by higher ones alone.
   What is withdrawn stays as a record that says so. Messages may come late or twice.

Everything is soft: a heartbeat names the sender's session, and when that is another, whatever came before is forgotten;
a neighbour that is silent is dropped with its proposals. A gateway that is gone does not live on in hearsay:
its neighbours lose it, nobody takes its own proposal back from a neighbour, and every further step adds a hop, of
which there are fewer than d.

One thing the two ends cannot see alone: a proposal is sent only for topics that the sender believes to be shared. When
it learns that a neighbour has (again) a topic, that neighbour may have dropped what it was sent, so it is sent again
(`repeat_for`).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

import numpy as np

from grapevine.systems.contracts.peer import Address
from grapevine.systems.gossip.interests import Interests
from grapevine.systems.gossip.messages import Topics
from grapevine.systems.gossip.profiles import KnownProfiles
from grapevine.systems.vitis.peer.elections import Elections, Neighbour
from grapevine.systems.vitis.peer.messages import Descriptor, Heartbeat
from grapevine.systems.vitis.peer.proposals import ReceivedProposals, SentProposals
from grapevine.systems.vitis.peer.relays import RingIds

_NOTHING: Topics = np.empty(0, np.uint64)


class Agreement:
    """One node's part in it, in one session."""

    def __init__(
        self, elections: Elections, interests: Interests, profiles: KnownProfiles, ring_ids: RingIds, session: int
    ) -> None:
        self.elections, self._interests, self._profiles, self._ring_ids = elections, interests, profiles, ring_ids
        self._sent = SentProposals(session)
        self._received: dict[Address, ReceivedProposals] = {}  # by neighbour

    def received_from(self, node: Address) -> ReceivedProposals:
        """What a neighbour proposes, as far as it is known; nothing if no heartbeat has come."""
        if node not in self._received:
            self._received[node] = ReceivedProposals()
        return self._received[node]

    def elect(self, neighbours: Mapping[Address, int]) -> None:
        """Algorithm 5, once a round, before the heartbeats. `neighbours` are all there are now, with their ring ids."""
        self._sent.keep(neighbours)
        self._received = {node: received for node, received in self._received.items() if node in neighbours}
        own, elections = self._interests.array(), self.elections
        if own is not elections.topics:
            elections.want(own, self._ring_ids(own))
            for received in self._received.values():
                received.keep(own)
        shared_at = self._profiles.shared_at
        elections.meet(
            {n: Neighbour(ring_id, shared_at(n), self.received_from(n)) for n, ring_id in neighbours.items()}
        )
        elections.elect()

    def heartbeats(self, node: Address, me: Descriptor, is_link: bool) -> Iterator[Heartbeat]:
        """Algorithm 6, once a round for every neighbour: what it does not know yet, in at least one heartbeat."""
        interests, sent = self._interests, self._sent
        stamp, version, repeated = sent.progress(node)
        news, stamp = self.elections.news(self._profiles.shared_at(node), stamp, repeated)
        changes = interests.changes_since(version)
        withdrawn = self._profiles.shared(node, changes[1]) if changes else _NOTHING
        must_repeat = self.received_from(node).must_repeat()
        for part in sent.send(node, news, withdrawn, stamp, interests.version):
            yield Heartbeat(me, is_link, must_repeat, sent.session, *part)

    def on_heartbeat(self, sender: Address, message: Heartbeat) -> None:
        """A neighbour's heartbeat came: mark what it changes, and note if it asks for everything again."""
        self.elections.mark(self.received_from(sender).take(message, self._interests))
        if message.repeat:
            self._sent.repeat(sender)

    def repeat_for(self, node: Address, topics: Topics | None) -> None:
        """The node's profile is another: it may have dropped what it was sent for these topics; None: for any."""
        self._sent.repeat(node, topics)

    def forget(self, node: Address) -> None:
        """The node is gone: what it proposed does not count in the next election."""
        self._received.pop(node, None)
