"""Rappel (Patel et al., Computer Networks 53, 2009): friends find the trees, trees carry the updates.

Every node has coordinates in a space of latencies and a Bloom filter of its feeds. It keeps a few friends that are near
and share its feeds; who that might be it hears from the friends of friends and fans, and audits one after the other
(`friends`, `audits`, `pings`). A newcomer to a feed asks a friend who has it, and wanders through the feed's tree until
it meets a node that is closer to the publisher than itself and has room (`joining`; Algorithm 2 is in `feed`, driven by
`children`). Trees are compacted by rejoining at ancestors now and then; updates are pushed down and, after a failure,
pulled (`updates`). Only subscribers are in a tree, so nobody ever gets an update that it did not ask for. How a session
begins is in `bootstrap`, how a feed is left in `leaving`.

Differs from the paper (docs/papers.md#rappel): pings to all neighbours of a node go out together; the listing of
Algorithm 1 takes victims among the candidates and that of Algorithm 2 tells the newcomer to change its parent, the text
says friends and the evicted child, as here; publishers keep their coordinates from one session to the next; who needs
another parent because its own has failed says so, lest it is sent back there.
"""

from __future__ import annotations

from grapevine.systems.registry import System, register

register(
    System(
        name="rappel",
        paper="Patel et al., Computer Networks 2009",
        summary="friends by interest and distance; one tree of subscribers per feed",
        peers="grapevine.systems.rappel.peers:Rappel",
        live="grapevine.systems.rappel.live:LiveRappel",
    )
)
