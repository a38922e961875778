"""Scribe (Castro et al., IEEE JSAC 20(8), 2002), the rival in Rappel §6.4: a tree of Pastry's routes for every topic.

Who wants a topic routes a subscription towards the id of its root. Every node on the way becomes a forwarder, with the
node before it as a child, and passes the subscription on unless it is in the tree already. Events go down the tree.
Forwarders may want nothing of what they forward: that is the noise that Rappel avoids. Parents send heartbeats; a child
that misses them subscribes again and comes in by another route. All state is soft: silent neighbours are forgotten.

Differs from the paper:
- The root is the topic's publisher, not the node nearest to the topic's id: Rappel §6.4 compares with this variant.
  While the publisher is away, the node nearest to its id holds the tree together, and nobody publishes.
- Pastry sends no messages here. All nodes share one set of converged tables (`pastry`) for a simulation; a node
  is in them from its start until it leaves or, after a crash, until a heartbeat and its time-out would have passed. So
  repairs take their time, but Pastry's upkeep costs nothing: Scribe's traffic is counted too low, never too high.
- Heartbeats go every `heartbeat_s`, after an event too; one serves all trees that two nodes share, and is answered, so
  that one exchange keeps both ends alive, as in Rappel. A subscription is answered as well (FreePastry does that).
- When tables change, nodes subscribe along the new route and let their old parent go once it sends again. So trees are
  Pastry's current routes, which have no cycles.
- A node takes any number of children: Scribe's remover of bottlenecks is left out. Rappel does not mention it.
- Who leaves in good order tells its neighbours in the trees. In Scribe, leaving Pastry is a failure like any other.
"""

from __future__ import annotations

from grapevine.systems.registry import System, register

register(
    System(
        name="scribe",
        paper="the rival in Rappel §6.4: Castro et al., IEEE JSAC 20(8), 2002, over Pastry (Rowstron & Druschel 2001)",
        summary="rendezvous trees over Pastry, rooted at the publishers; forwarders need not be subscribers",
        peers="grapevine.systems.scribe.peers:Scribe",
    )
)
