"""Slow, obvious backup sets, their gossip and mending (OMen, Algorithms 1 to 4), in plain Python.

Written from the paper and the docstrings, to be compared element by element with the kernels. These orders matter:

- Candidates are the own buffer, that of the partner, then those of callers by number. A buffer is the node itself, its
  view and its samples; a view is backups and neighbours of the nearest predecessor, then of the next.
- Missing topics stand in a row, at first ascending. One that is done leaves its place to the last.
- A hash settles ties between candidates; the first wins where even that is equal.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from itertools import combinations

import networkx as nx

from tests.naive import WORD, draw, mix
from tests.naive_designs import Edge, choose, contribution

EXCHANGE_PARTNER, BACKUP_TOPICS, BACKUP_TIES = 2, 20, 21


def absorb(state: int, word: int) -> int:
    return mix(((state ^ word) + 0x9E3779B97F4A7C15) % WORD)


def below(bits: int, bound: int) -> int:
    return (bits >> 32) * bound >> 32


def tie(state: int, candidate: int) -> int:
    return absorb(absorb(state, BACKUP_TIES), candidate) >> 33


@dataclass
class Kept:
    """What a node keeps for one of its predecessors: v.B(v'), and from when on it may count as ready."""

    nodes: list[int] = field(default_factory=list)
    coverage: int = 0
    complete: bool = False
    gained: int = 0


def build(
    mine: set[int],
    wanted: int,
    rule: str,
    state: int,
    candidates: Sequence[int],
    topics: Sequence[set[int]],
    load: Sequence[int],
) -> Kept:
    """§4.2: those of the candidates that cover each topic `wanted` times, or as often as they can. `load` has, by node,
    the sets that it is in already."""
    missing = dict.fromkeys(mine, wanted)
    waiting = sorted(mine) if wanted > 0 else []
    chosen: list[int] = []
    draws = 0

    def gain(u: int) -> int:
        return sum(missing[topic] > 0 for topic in topics[u] & mine)

    def best(some: Iterable[int]) -> int | None:
        able = [u for u in some if u not in chosen and gain(u) > 0]
        return max(able, key=lambda u: (worth(u), tie(state, u)), default=None)

    def worth(u: int) -> int:
        return {"random": 0, "gain/load": (gain(u) << 16) // (1 + load[u])}.get(rule, gain(u))

    def strike(topic: int) -> None:
        waiting[waiting.index(topic)] = waiting[-1]
        waiting.pop()

    while waiting:
        if rule == "greedy":
            found = best(candidates)
            if found is None:
                break
        else:
            topic = waiting[below(absorb(state, draws), len(waiting))]
            draws += 1
            found = best(u for u in candidates if topic in topics[u])
            if found is None:
                strike(topic)
                continue
        chosen.append(found)
        for topic in sorted(topics[found] & mine):
            missing[topic] -= 1
            if missing[topic] == 0:
                strike(topic)
    covered = sum(min(wanted, sum(topic in topics[u] for u in chosen)) for topic in mine)
    return Kept(chosen, covered, covered == wanted * len(mine))


def successors(listed: Sequence[int], present: set[int], subject: int, most: int) -> list[int]:
    """The next nodes on the ring that are present."""
    at = listed.index(subject)
    around = [*listed[at + 1 :], *listed[:at]]
    return [v for v in around if v in present][:most]


@dataclass
class NaiveGossip:
    """All nodes of a small network, and one T-Man round after the other (Algorithms 3 and 4)."""

    seed: int
    rule: str
    ranks: int
    kept: dict[tuple[int, int], Kept] = field(default_factory=dict)  # (keeper, subject)

    def stand(
        self,
        now: int,
        *,
        topics: Sequence[set[int]],
        listed: Sequence[int],
        present: set[int],
        alive: set[int],
        settled: set[int],
        newcomers: set[int],
        links: Sequence[Sequence[int]],
        samples: Sequence[Sequence[int]],
        wanted: Sequence[int],
    ) -> None:
        """How things stand before the exchange. Who is no successor any more forgets, who becomes one knows nothing;
        nor do newcomers, whatever they knew before they went."""
        self.now, self.topics, self.listed, self.wanted = now, topics, listed, wanted
        self.alive, self.usable, self.links, self.samples = alive, alive & settled, links, samples
        duties = [(v, subject) for subject in listed for v in successors(listed, present, subject, self.ranks)]
        remembered = {duty: kept for duty, kept in self.kept.items() if duty[0] not in newcomers}
        self.kept = {duty: remembered.get(duty) or Kept(gained=now) for duty in duties}

    def subjects(self, v: int) -> list[int]:
        """Whom it keeps something for, the nearest predecessor first."""
        at = self.listed.index(v)
        before = [*self.listed[:at][::-1], *self.listed[at + 1 :][::-1]]
        return [subject for subject in before if (v, subject) in self.kept]

    def view(self, v: int) -> list[int]:
        found: list[int] = []
        for subject in self.subjects(v):
            found += self.kept[v, subject].nodes
            found += self.links[subject]
        return list(dict.fromkeys(found))

    def buffer(self, v: int) -> list[int]:
        return list(dict.fromkeys([v, *self.view(v), *self.samples[v]]))

    def partner(self, v: int) -> int | None:
        bits, found = draw(self.seed, self.now, v, EXCHANGE_PARTNER), None
        if view := self.view(v):
            found = view[below(bits, len(view))]
        if found in (None, v):
            found = self.samples[v][below(bits, len(self.samples[v]))] if self.samples[v] else None
        return found if found != v and found in self.alive and found in self.listed else None

    def exchange(self) -> tuple[int, int, int]:
        """Everybody meets its partner and its callers, and selects its view anew: messages and descriptors sent, and
        how many became backups of somebody for whom they were none before."""
        load = [
            sum(u in kept.nodes for (v, _), kept in self.kept.items() if v in self.alive)
            for u in range(len(self.topics))
        ]
        asked = 0
        there = sorted(self.alive & set(self.listed))
        partner = {v: self.partner(v) for v in there}
        buffers, kept = {v: self.buffer(v) for v in there}, dict(self.kept)
        for v in there:
            met = [q for q in (partner[v],) if q is not None] + [q for q in there if partner[q] == v]
            merged = dict.fromkeys(u for q in (v, *met) for u in buffers[q])
            for subject in self.subjects(v):
                state = draw(self.seed, self.now, v, BACKUP_TOPICS, subject)
                usable = [u for u in merged if u in self.usable and u != subject]
                made = build(self.topics[subject], self.wanted[subject], self.rule, state, usable, self.topics, load)
                before = self.kept[v, subject]
                asked += len(set(made.nodes) - set(before.nodes))
                made.gained = self.now if made.coverage > before.coverage else before.gained
                kept[v, subject] = made
        self.kept = kept
        called = [(v, q) for v, q in partner.items() if q is not None]
        return 2 * len(called), sum(len(buffers[v]) + len(buffers[q]) for v, q in called), asked


def mend(
    topics: Sequence[set[int]],
    shadow: Sequence[int],
    wanted: set[int],
    edges: Iterable[Edge],
    degree: Sequence[int],
    *,
    sight: str,
    rho: float,
    seed: int,
) -> list[Edge]:
    """Algorithm 1: the edges among the shadow set that LowODA adds to those in sight, in order.

    Ties go by the places of nodes in the shadow set.
    """
    overlay: nx.Graph[int] = nx.Graph()
    overlay.add_nodes_from(range(len(topics)))
    ends_inside = {"shadow": 2, "neighbours": 1, "overlay": 0}[sight]
    overlay.add_edges_from((p, q) for p, q in edges if (p in shadow) + (q in shadow) >= ends_inside)
    interests = [mine & wanted for mine in topics]
    links = {place: degree[v] for place, v in enumerate(shadow)}
    added: list[Edge] = []
    while True:
        gains = {}
        for i, j in combinations(range(len(shadow)), 2):
            if gain := contribution(overlay, interests, (shadow[i], shadow[j])):
                gains[i, j] = gain
        if not gains:
            return added
        i, j = choose(gains, links, "lowoda", rho, seed)
        overlay.add_edge(shadow[i], shadow[j])
        links[i] += 1
        links[j] += 1
        added.append((shadow[i], shadow[j]))
