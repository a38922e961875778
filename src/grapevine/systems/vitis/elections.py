"""The election of gateways (Algorithm 5) for all members of some topics, over arrays.

Members of a topic are known by their position in its subscriber list (`Network.topic_nodes`); proposals are kept flat,
one entry per (topic, subscriber) in that order.

Theory. In a round everybody proposes from what its neighbours proposed in the round before. So whoever has the same
neighbours that propose the same would propose the same again, and is not asked: an election ends as if all had been
asked. Who is to be asked is *due*, a flag per (topic, subscriber): after a round all neighbours of those who changed
their proposals (`elect`), and before the next one whoever got or lost a neighbour in the topic, or has one that begins
afresh (`find_due`).
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from grapevine.blocks.profiles import Profiles
from grapevine.blocks.small_world import Ids
from grapevine.blocks.views import GATEWAY_TIES, NOBODY
from grapevine.kernels.csr import Columns, Starts, find
from grapevine.kernels.jit import njit
from grapevine.kernels.ring import ring_distance
from grapevine.kernels.rng import absorb, stream
from grapevine.kernels.topic_graph import Scratch, append_members, enter, leave, new_scratch, room_for
from grapevine.systems.vitis.rules import Proposals, Words, propose_gateways

Flags = NDArray[np.bool_]

MANY_CHANGES = 4  # of a node's neighbours: to look up in which topics it is due takes as long as to ask it in all
_0, _1 = np.uint64(0), np.uint64(1)


class Electorate(NamedTuple):
    """What elections read: ring ids, the subscribers of every topic, links both ways, who is online and who is taken to
    be, and who is due in all its topics, whatever the flags of each say."""

    node_ids: Ids
    topic_ids: Ids
    topic_starts: Starts
    topic_nodes: Columns
    link_starts: Starts
    links: Columns
    alive: Flags
    there: Flags  # who is taken to be there: those who are, and those of whom nobody has noticed that they are gone
    due_everywhere: Flags


class Ballot(NamedTuple):
    """Room for the election of one topic, by member, and for one entry more. It is reused from topic to topic."""

    distance: Words  # from the topic's id
    ties: Words  # the state of the hash that decides between neighbours; of those who were due at the beginning
    asked: Columns  # who is asked in this round …
    proposals: Proposals  # … and what they propose, in the same order
    changed: Columns  # those of them who proposed something else in the round before


@njit
def elect(
    seed: int, topics: tuple[int, int], d: int, most_rounds: int, among: Electorate, proposals: Proposals, due: Flags
) -> int:
    """Algorithm 5 for the topics first … last-1, round by round until nothing changes or `most_rounds` are done;
    returns the most rounds that a topic needed.

    Goes on from `proposals`, which it changes; members that were not there before begin by proposing themselves. Where
    more than one round may be needed, all members are due. Afterwards those are due who are to be asked in the next
    round.
    """
    first, last = topics
    starts, alive = among.topic_starts, among.alive
    graph, ballot, most = new_scratch(len(alive)), _new_ballot(topics, starts), 0
    for topic in range(first, last):
        a, b = starts[topic], starts[topic + 1]
        members, asked = among.topic_nodes[a:b], due[a:b]
        mine = Proposals(proposals.gateway[a:b], proposals.parent[a:b], proposals.hops[a:b])
        if not _prepare(members, among, mine, asked):
            continue
        for i in range(b - a):
            ballot.distance[i] = ring_distance(among.node_ids[members[i]], among.topic_ids[topic])
            if asked[i]:
                ballot.ties[i] = absorb(stream(seed, topic, i), GATEWAY_TIES)
        graph = _open_topic(members, asked, among, graph)
        most = max(most, _elect_one(d, most_rounds, mine, asked, graph, ballot))
        leave(members, graph)
    return most


@njit
def _prepare(members: Columns, among: Electorate, mine: Proposals, due: Flags) -> bool:
    """Who is gone proposes nothing, and who has come itself; returns whether anybody is due. Who is gone unnoticed
    proposes what it did."""
    some = False
    for i in range(len(members)):
        due[i] = (due[i] | among.due_everywhere[members[i]]) & among.alive[members[i]]
        some |= due[i]
        if not among.there[members[i]]:
            mine.gateway[i] = NOBODY
        elif mine.gateway[i] == NOBODY:
            mine.gateway[i], mine.parent[i], mine.hops[i] = i, i, 0
    return some


@njit
def _new_ballot(topics: tuple[int, int], starts: Starts) -> Ballot:
    """Room for the largest of the topics first … last-1."""
    most = np.int64(0)
    for topic in range(topics[0], topics[1]):
        most = max(most, starts[topic + 1] - starts[topic])
    room = most + 1
    distance, ties, asked = np.empty(room, np.uint64), np.empty(room, np.uint64), np.empty(room, np.int32)
    proposals = Proposals(np.empty(room, np.int32), np.empty(room, np.int32), np.empty(room, np.int32))
    return Ballot(distance, ties, asked, proposals, np.empty(room, np.int32))


@njit
def _open_topic(members: Columns, due: Flags, among: Electorate, graph: Scratch) -> Scratch:
    """The graph of these members, in scratch that has room for it, with the rows of those alone who are due."""
    links, count = 0, _0
    for i in range(len(members)):
        if due[i]:
            links += among.link_starts[members[i] + 1] - among.link_starts[members[i]]
    graph = room_for(graph, links)
    enter(members, among.there, graph)
    for i in range(len(members)):
        graph.starts[i] = count
        if due[i]:
            neighbours = among.links[among.link_starts[members[i]] : among.link_starts[members[i] + 1]]
            count = append_members(neighbours, np.uint32(len(members)), graph.local, graph.edges, count)
    graph.starts[len(members)] = count
    return graph


@njit
def _elect_one(d: int, most_rounds: int, mine: Proposals, due: Flags, graph: Scratch, ballot: Ballot) -> int:
    """The election of one topic from `mine`, which it changes; returns the rounds that it took."""
    for rounds in range(most_rounds):
        asked = _ask(due, ballot)
        propose_gateways(asked, d, ballot.distance, ballot.ties, mine, graph, ballot.proposals)
        changed = _take(asked, ballot, mine)
        if len(changed) == 0:
            return rounds
        for i in changed:
            for at in range(np.uint64(graph.starts[i]), np.uint64(graph.starts[i + 1])):
                due[np.uint32(graph.edges[at])] = True
    return most_rounds


@njit
def _ask(due: Flags, ballot: Ballot) -> Columns:
    """The members that are due, ascending; nobody is due any more. As in `append_members`, everybody is written."""
    count = _0
    for i in range(np.uint64(len(due))):
        ballot.asked[count] = i
        count += _1 if due[i] else _0
        due[i] = False
    return ballot.asked[:count]


@njit
def _take(asked: Columns, ballot: Ballot, mine: Proposals) -> Columns:
    """Let the new proposals of those who were asked be theirs; returns the members whose proposals are others now."""
    new, count = ballot.proposals, _0
    for at in range(np.uint64(len(asked))):
        i = np.uint32(asked[at])
        gateway, parent, hops = new.gateway[at], new.parent[at], new.hops[at]
        ballot.changed[count] = i
        is_new = (gateway != mine.gateway[i]) | (parent != mine.parent[i]) | (hops != mine.hops[i])
        count += _1 if is_new else _0
        mine.gateway[i], mine.parent[i], mine.hops[i] = gateway, parent, hops
    return ballot.changed[:count]


@njit
def find_due(
    nodes: tuple[int, int],
    before: tuple[Starts, Columns],
    afresh: Flags,
    among: Electorate,
    profiles: Profiles,
    due: Flags,
) -> None:
    """Let those of the nodes first … last-1 be due in a topic who got or lost a neighbour that wants it, too, since
    links were as in `before` (both ways, as rows).

    Who is `afresh` has come or gone since: to its neighbours it is a new one, and all are new to it. Who got or lost
    many neighbours is marked in `among.due_everywhere` instead.
    """
    starts, links = before
    for p in range(nodes[0], nodes[1]):
        old = links[starts[p] : starts[p + 1]]
        new = among.links[among.link_starts[p] : among.link_starts[p + 1]]
        changes = _changes(old, new, afresh[p], afresh)
        among.due_everywhere[p] = len(changes) > MANY_CHANGES
        if len(changes) <= MANY_CHANGES:
            for q in changes:
                _share(p, q, among, profiles, due)


@njit
def _changes(old: Columns, new: Columns, all_new: bool, afresh: Flags) -> Columns:
    """Who is in one of two ascending rows alone, or in both and afresh, or in any, if all are new."""
    out, count, a, b = np.empty(len(old) + len(new), np.int32), 0, 0, 0
    while a < len(old) or b < len(new):
        if a < len(old) and b < len(new) and old[a] == new[b]:
            out[count] = new[b]
            count += all_new or afresh[new[b]]
            a, b = a + 1, b + 1
        elif b == len(new) or (a < len(old) and old[a] < new[b]):
            out[count] = old[a]
            count, a = count + 1, a + 1
        else:
            out[count] = new[b]
            count, b = count + 1, b + 1
    return out[:count]


@njit
def _share(p: int, q: int, among: Electorate, profiles: Profiles, due: Flags) -> None:
    """Let p be due in the topics that it shares with q."""
    a, b = profiles.starts[p], profiles.starts[q]
    while a < profiles.starts[p + 1] and b < profiles.starts[q + 1]:
        if profiles.topics[a] == profiles.topics[b]:
            topic = np.int64(profiles.topics[a])
            due[find(among.topic_nodes, among.topic_starts[topic], among.topic_starts[topic + 1], p)] = True
            a, b = a + 1, b + 1
        elif profiles.topics[a] < profiles.topics[b]:
            a += 1
        else:
            b += 1


@njit
def start_afresh(nodes: Columns, profiles: Profiles, subscribers: tuple[Starts, Columns], gateway: Columns) -> None:
    """Forget what these nodes proposed in all their topics."""
    starts, members = subscribers
    for p in nodes:
        for at in range(profiles.starts[p], profiles.starts[p + 1]):
            topic = np.int64(profiles.topics[at])
            gateway[find(members, starts[topic], starts[topic + 1], p)] = NOBODY


@njit
def carry_over(old: tuple[Starts, Columns], proposed: Proposals, new: tuple[Starts, Columns], out: Proposals) -> None:
    """Take over what was proposed when the topics had other subscribers: `old` and `new` are those of all topics, the
    proposals are by (topic, subscriber) in their order.

    Who has joined a topic proposes nothing yet, and neither does whoever proposed, or was told by, a member that has
    left it; they begin afresh. All others go on.
    """
    (old_starts, old_nodes), (new_starts, new_nodes) = old, new
    for topic in range(len(new_starts) - 1):
        a, b = old_starts[topic], new_starts[topic]
        count = old_starts[topic + 1] - a
        position, at = np.full(count, NOBODY, np.int32), b
        for i in range(count):  # of the old members among the new ones; both ascend
            while at < new_starts[topic + 1] and new_nodes[at] < old_nodes[a + i]:
                at += 1
            if at < new_starts[topic + 1] and new_nodes[at] == old_nodes[a + i]:
                position[i] = at - b
        out.gateway[b : new_starts[topic + 1]] = NOBODY
        for i in range(count):
            gateway, parent = proposed.gateway[a + i], proposed.parent[a + i]
            if position[i] == NOBODY or gateway == NOBODY or NOBODY in (position[gateway], position[parent]):
                continue
            at = b + position[i]
            out.gateway[at], out.parent[at] = position[gateway], position[parent]
            out.hops[at] = proposed.hops[a + i]


@njit
def who_is_gateway(topic_starts: Starts, gateway: Columns) -> NDArray[np.bool_]:
    """Flags of those who propose themselves, by (topic, subscriber): they look the topic up."""
    out = np.empty(len(gateway), np.bool_)
    for topic in range(len(topic_starts) - 1):
        for at in range(topic_starts[topic], topic_starts[topic + 1]):
            out[at] = gateway[at] == at - topic_starts[topic]
    return out
