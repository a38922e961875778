"""The rules of Trellis, as functions of a few numbers: compiled rounds and peers in plain Python call the same ones.

Theory. The subscribers of a topic that links connect are a cluster. Every member has a **label**: the root that it
believes in, the root's latest tick that it heard of, its hops from there and the parent it has this from. Clusters of
a topic are ordered by the *rank* of their root, a hash of topic and node, of which the lowest wins.

1. *Labels* (`is_better_label`, `may_adopt`). A member takes the lowest rank among its neighbours' labels and its own
   node, with the fewest hops, and keeps its parent among equals. Ranks only fall along parents, and a label never comes
   back from one's own child, so that a cluster at rest has one root, the member of lowest rank, and its parents are a
   tree of fewest hops.
2. *Tombs* (`is_buried`, `has_stalled`). A root that is gone leaves labels that its former members could hand each other
   for ever. So who loses its parent, or hears no new tick, buries the label: it takes the same root again only with a
   newer tick, which none but a living root makes, or nearer to the root than it was itself, where nobody can be whose
   label came by way of it.
3. *Bridges* (`is_better_offer`). A node that does not want a topic, but sees two labels of it, offers itself to every
   neighbour whose label is not the lowest that it sees. Offers climb to the root, the best on the way; the choice of
   the root comes down. Every cluster takes one, and only towards a lower rank: so bridges and the trees of clusters
   have no cycles once labels rest. All clusters prefer the same nodes, so that one node bridges many of them.
4. *Friends* (`shared_value`, `gain_in_topic`, `accepts_friend`). A link is worth what its loss would cost, a new one
   what it would join. Both ends have to win by more than a margin, which grows while nothing is missing, so links come
   to rest.

Addresses are any whole numbers of up to 64 bits. Ties are decided by hashes, never by the order in which things came.
"""

from __future__ import annotations

import math

import numpy as np

from grapevine.kernels.jit import njit
from grapevine.kernels.rng import Word, absorb

MOST_HOPS = 60  # from a root: a label that has come farther goes in a circle

_RANK, _OFFER, _TIE = np.uint64(1 << 50), np.uint64(1 << 51), np.uint64(1 << 52)  # what hashes are for
_NO_TIE = np.uint64(0)


@njit
def rank_of(topic: Word, node: Word) -> np.uint64:
    """The rank of a cluster of the topic whose root this node is; the lowest is the first."""
    return absorb(absorb(_RANK, topic), node)


@njit
def offer_hash(topic: Word, node: Word) -> np.uint64:
    """By which a node is preferred as a bridge of the topic, or a member as its end; the lowest is the best."""
    return absorb(absorb(_OFFER, topic), node)


@njit
def link_tie(node: Word, neighbour: Word) -> np.uint64:
    """Decides between neighbours that are equally good for the node; the lowest wins. Never 0."""
    return absorb(absorb(_TIE, node), neighbour) | np.uint64(1)


@njit
def parent_tie(node: Word, neighbour: Word, is_parent: bool) -> np.uint64:
    """`link_tie`, but that a parent wins against everybody else."""
    return _NO_TIE if is_parent else link_tie(node, neighbour)


@njit
def may_adopt(hops: int, is_own_label: bool, buried: bool) -> bool:
    """Whether a neighbour's label, so many hops from its root, may be taken at all.

    `is_own_label`: the neighbour has it from the node itself, or the node is its root. `buried`: the root is that of
    the node's tomb, and `is_buried` is true.
    """
    return not is_own_label and not buried and hops + 1 < MOST_HOPS


@njit
def is_buried(tick: int, hops: int, tomb_tick: int, tomb_hops: int) -> bool:
    """Whether a label of a buried root may be an echo: not newer than the tomb, and not nearer to the root."""
    return tick <= tomb_tick and hops > tomb_hops


@njit
def is_better_label(label: tuple[Word, int, Word], than: tuple[Word, int, Word]) -> bool:
    """Whether the first label is to be preferred. Each is (rank, hops as the node would have them, `parent_tie`)."""
    if label[0] != than[0]:
        return bool(label[0] < than[0])
    if label[1] != than[1]:
        return label[1] < than[1]
    return bool(label[2] < than[2])


@njit
def has_lost_parent(is_linked: bool, rank: np.uint64, parent_rank: np.uint64) -> bool:
    """Whether a member whose own label has this rank must bury it: the parent is no neighbour, or not in the topic, any
    more (`is_linked`), or it has a label of higher rank."""
    return not is_linked or bool(parent_rank > rank)


@njit
def has_stalled(now: int, advanced: int, stall_rounds: int) -> bool:
    """Whether a label whose tick was new in the round `advanced` for the last time is to be buried. The tomb then is at
    hops -1, so that nothing but a newer tick revives the root."""
    return now - advanced > stall_rounds


@njit
def is_other_way(same_root: bool, hops: int, own_hops: int, is_parent: bool, is_child: bool) -> bool:
    """Whether a neighbour in the topic would do as a parent if the present one were gone, so that the edge to this is
    not needed."""
    return same_root and hops <= own_hops and not is_parent and not is_child


@njit
def is_better_offer(offer: tuple[Word, Word], than: tuple[Word, Word]) -> bool:
    """Whether the first offer is to be preferred. Each is the `offer_hash` of the bridge, then of its end."""
    if offer[0] != than[0]:
        return bool(offer[0] < than[0])
    return bool(offer[1] < than[1])


@njit
def looks_for_way(
    is_root: bool, has_choice: bool, choice_has_arrived: bool, has_lost_bridge: bool, has_lost_parent: bool
) -> bool:
    """Whether a member looks for a way to a lower rank itself: a root whose cluster has no bridge, or whose choice has
    not reached its end yet; the end of a bridge that is gone; whoever lost its parent, until it has another."""
    return has_lost_bridge or has_lost_parent or (is_root and not (has_choice and choice_has_arrived))


@njit
def probe_order(new_relays: int, topic: Word, first: Word, second: Word) -> tuple[int, np.uint64]:
    """How good a way by one or two nodes is; the lowest is the best. `second` is `first` again where there is one node
    only. Fewest new relays, then a hash, as for offers: so ways of one topic meet in the same nodes."""
    return new_relays, absorb(offer_hash(topic, first), second)


@njit
def shared_value(is_needed: bool, neighbours: int, enough: int, spare: float, surplus: float) -> float:
    """What a link is worth in one topic that both ends want, to an end that has so many `neighbours` in it.

    `is_needed`: it is an edge of the topic's tree, and the child has no other way (`is_other_way`). The others are
    `enough_neighbours`, `spare_value` and `surplus_value` of the config.
    """
    if is_needed:
        return 1.0
    return spare if neighbours <= enough else surplus


@njit
def gain_in_topic(joins_clusters: bool, neighbours: int, enough: int, spare: float, surplus: float) -> float:
    """What a new link would be worth in one topic that both ends want, to an end that has so many `neighbours` in it.

    `joins_clusters`: the roots differ, and neither label has changed for a while (`is_calm`).
    """
    if joins_clusters:
        return 1.0
    return spare if neighbours < enough else surplus


@njit
def is_calm(now: int, changed: int, joined: int, patience_rounds: int, calm_rounds: int) -> bool:
    """Whether a label that changed its root in this round counts. Newcomers do not wait: they have nothing to lose."""
    return now - changed >= patience_rounds or now - joined < calm_rounds


@njit
def margin_now(margin: float, stiffness: float, interval: int) -> float:
    """By how much a friend must be better, for a node that looks every `interval` rounds. Not after a loss."""
    return margin + stiffness * math.log2(interval)


@njit
def accepts_friend(gains: tuple[float, float], values: tuple[float, float], margin: float) -> bool:
    """Whether two nodes link: both would win, in the mean more than both lose by more than the margin.

    `gains` are what the link is worth to each, `values` what the link that each would drop for it is worth, 0 where a
    slot is free. The margin is the larger one of the two; where both have a free slot, there is none.
    """
    if values[0] + values[1] <= 0.0:
        return gains[0] + gains[1] > 0.0
    return 0.5 * (gains[0] + gains[1]) > values[0] + values[1] + margin


@njit
def next_interval(interval: int, now: int, quiet_since: int, calm_rounds: int, most_interval: int) -> int:
    """The rounds until the next look for friends, after one in which nothing was lost."""
    if now - quiet_since <= calm_rounds:
        return interval
    return min(2 * interval, most_interval)
