"""Bridges between the clusters of a topic: who offers itself, which offer a cluster chooses, and who keeps the way.

A node that does not want a topic, but has neighbours in two clusters of it, tells those in the higher ones that it
could join them to the lowest. A member passes the best offer that it, or anybody below it in the tree of labels, has
got to its parent; so the root hears of the best of all, which is its choice, and that goes down the tree again. The
member that has got it then asks the bridge to carry the topic (`ways`).

All of it is a function of labels and of what neighbours say now: nothing is remembered, so nothing is stale once
neighbours have said what changed.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

from grapevine.systems.contracts.peer import Address
from grapevine.systems.trellis.peer.labels import OwnLabel
from grapevine.systems.trellis.peer.messages import Best, Choice, Label, Offer
from grapevine.systems.trellis.peer.plain import is_better_offer, offer_hash, rank_of


class Bridge(NamedTuple):
    """An offer, as it climbs and comes down."""

    bridge: Address
    member: Address  # who has got it


def offers_to(topic: int, heard: Mapping[Address, Label]) -> dict[Address, Offer]:
    """What a node that does not want the topic offers to its neighbours that do."""
    ranks = {node: rank_of(topic, label.root) for node, label in heard.items()}
    lowest = min(ranks.values(), default=0)
    return {node: Offer(topic, lowest) for node, rank in ranks.items() if rank > lowest}


def best_offer(
    me: Address,
    own: OwnLabel,
    heard: Mapping[Address, Label],
    offers: Mapping[Address, Offer],
    below: Mapping[Address, Best],
) -> Bridge | None:
    """The best of a member's offers and of those that its children pass on; None: there are none."""
    found = [Bridge(node, me) for node, offer in offers.items() if offer.rank < own.rank]
    for node, best in below.items():
        label = heard.get(node)
        if label is not None and label.is_child and label.root == own.root and best.member != me:
            found.append(Bridge(best.bridge, best.member))
    chosen: tuple[tuple[int, int], Bridge] | None = None
    for offer in found:
        key = offer_hash(own.topic, offer.bridge), offer_hash(own.topic, offer.member)
        if chosen is None or is_better_offer(key, chosen[0]):
            chosen = key, offer
    return chosen[1] if chosen else None


def choice(me: Address, own: OwnLabel, best: Bridge | None, above: Mapping[Address, Choice]) -> Bridge | None:
    """What the cluster has chosen, as far as a member knows: at the root its best, below what the parent says."""
    if own.root == me:
        return best
    said = above.get(own.parent) if own.parent is not None else None
    return Bridge(said.bridge, said.member) if said is not None else None
