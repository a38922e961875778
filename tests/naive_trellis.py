"""Slow, obvious rounds of Trellis in plain Python, from the guide of the protocol and the docstrings of its rules.

Nodes are objects, labels stand in dicts by topic, and what a step reads of others is a copy made at its start. Hashes
are computed here anew. Only the slots of links are kept as arrays keep them, since draws of a random link count them.
"""

from __future__ import annotations

import copy
import math
from collections.abc import Iterable
from dataclasses import dataclass, field

from grapevine.systems.trellis.config import TrellisConfig
from tests.naive import WORD, mix
from tests.naive_rounds import NaiveNetwork, Node

PHASE, RING_SIDE, LINK, SAMPLE, CALLER, TURN = range(50, 56)
LAST = WORD - 1
PROTECTED = 1e9


def hashed(*words: int) -> int:
    """The first word is what the hash is for."""
    state = words[0]
    for word in words[1:]:
        state = mix(((state ^ word) + 0x9E3779B97F4A7C15) % WORD)
    return state


def rank(topic: int, node: int) -> int:
    return hashed(2**50, topic, node)


def offer_hash(topic: int, node: int) -> int:
    return hashed(2**51, topic, node)


def link_tie(node: int, other: int) -> int:
    return hashed(2**52, node, other) | 1


@dataclass
class Label:
    root: int
    tick: int
    hops: int = 0
    parent: int | None = None
    changed: int = 0
    other_way: bool = False
    offer: tuple[int, int, int] | None = None  # bridge, member, hops below
    choice: tuple[int, int] | None = None  # bridge, member
    advanced: int = 0
    tomb: tuple[int, int, int] | None = None  # root, tick, hops
    neighbours: int = 0


@dataclass
class Grower:
    """What a node has beside links, samples and backups."""

    labels: dict[int, Label] = field(default_factory=dict)
    values: dict[int, float] = field(default_factory=dict)  # by neighbour
    made: dict[int, int] = field(default_factory=dict)  # likewise
    prospects: list[int] = field(default_factory=list)
    interval: int = 1
    quiet_since: int = 0
    lost: int = -(10**6)
    freed: int = 0
    degree: int = 0


class NaiveTrellis:
    """The protocol on a `NaiveNetwork`, which samples and lets nodes come and go."""

    def __init__(self, network: NaiveNetwork, config: TrellisConfig) -> None:
        self.network, self.config = network, config
        self.growers = [Grower() for _ in network.nodes]
        self.joined = [0 for _ in network.nodes]
        for p in network.nodes:
            p.links = [None] * config.most_links
            self.begin(p.number)

    def begin(self, p: int) -> None:
        now = self.network.now
        labels = {t: Label(p, now, changed=now, advanced=now) for t in self.network.nodes[p].topics}
        self.growers[p] = Grower(labels, quiet_since=now, freed=now)
        self.network.nodes[p].links = [None] * self.config.most_links

    def forget(self, nodes: Iterable[int]) -> None:
        """Those who joined begin; samples of those who are gone still tell what these told last."""
        for p in nodes:
            labels = self.growers[p].labels
            self.begin(p)
            if not self.network.nodes[p].alive:
                self.growers[p].labels = labels

    # Links

    def near(self, p: int) -> list[int]:
        return [link[0] for link in self.network.nodes[p].links if link]

    def there(self, p: int) -> list[int]:
        return [q for q in self.near(p) if self.network.nodes[q].alive]

    def alive(self) -> list[Node]:
        return [p for p in self.network.nodes if p.alive]

    def drop(self, p: int, q: int) -> None:
        row = self.network.nodes[p].links
        self.network.nodes[p].links = [None if link and link[0] == q else link for link in row]

    def drop_silent(self) -> None:
        now, before = self.network.now, {p.number: set(self.near(p.number)) for p in self.network.nodes}
        for p in self.alive():
            for slot, link in enumerate(p.links):
                if link is None:
                    continue
                q, heard = link
                if self.network.nodes[q].alive and p.number in before[q]:
                    p.links[slot] = (q, now)
                elif self.network.nodes[q].alive or heard < now - self.config.max_age:
                    p.links[slot] = None
                    self.growers[p.number].lost = now

    # A round

    def round(self) -> None:
        now = self.network.now
        self.drop_silent()
        for p, own in enumerate(self.growers):
            if len(self.near(p)) < own.degree:
                own.freed = own.quiet_since = now
                own.interval = 1
        self.network.sample()
        self.hear(*self.offers())
        due = {p.number for p in self.alive() if self.is_due(p.number)}
        ring, friends = self.wishes(due)
        self.agree(ring, friends)
        for p, own in enumerate(self.growers):
            own.degree = len(self.near(p))
            if p in due and now - own.quiet_since > self.config.calm_rounds:
                own.interval = min(2 * own.interval, self.config.most_interval)

    def is_due(self, p: int) -> bool:
        own, now = self.growers[p], self.network.now
        phase = (self.network.draw(PHASE, p, 0) >> 32) % own.interval
        return now % own.interval == phase or now - own.freed < self.config.calm_rounds

    def offers(self) -> tuple[dict[tuple[int, int], int], dict[tuple[int, int], int]]:
        """The best bridge that offered itself to each (member, topic), and how many bridges in use have each link as an
        edge, by (owner, neighbour)."""
        best: dict[tuple[int, int], int] = {}
        in_use: dict[tuple[int, int], int] = {}
        for b in (p.number for p in self.alive()) if self.config.bridges else ():
            seen: dict[int, list[int]] = {}
            for m in self.there(b):
                for t in self.growers[m].labels.keys() - self.growers[b].labels.keys():
                    seen.setdefault(t, []).append(m)
            for t, members in seen.items():
                label = {m: self.growers[m].labels[t] for m in members}
                target = min(members, key=lambda m: (rank(t, label[m].root), label[m].hops, link_tie(b, m)))
                for m in members:
                    if rank(t, label[m].root) > rank(t, label[target].root):
                        rivals = [x for x in (best.get((m, t)), b) if x is not None]
                        best[m, t] = min(rivals, key=lambda x: offer_hash(t, x))
                        if label[m].choice == (b, m):
                            for edge in ((b, m), (m, b), (b, target), (target, b)):
                                in_use[edge] = in_use.get(edge, 0) + 1
        return best, in_use

    def hear(self, offered: dict[tuple[int, int], int], in_use: dict[tuple[int, int], int]) -> None:
        before = [copy.deepcopy(own.labels) for own in self.growers]
        for p in (node.number for node in self.alive()):
            near = self.there(p)
            values = dict.fromkeys(near, 0.0)
            for t in sorted(before[p]):
                mates = [q for q in near if t in before[q]]
                for q in mates:
                    values[q] += self.shared_value(before, p, q, t)
                self.growers[p].labels[t] = self.heard_label(before, p, t, mates, offered.get((p, t)))
            own = self.growers[p]
            for q in near:
                if own.made[q] == self.network.now - 1:
                    values[q] = max(values[q], own.values[q])
                values[q] += self.config.bridge_value * in_use.get((p, q), 0)
            for q in self.ring_neighbours(p):
                if q in values:
                    values[q] = PROTECTED
            self.growers[p].values = {q: values.get(q, 0.0) for q in self.near(p)}

    def shared_value(self, before: list[dict[int, Label]], p: int, q: int, t: int) -> float:
        mine, its = before[p][t], before[q][t]
        if (mine.parent == q and not mine.other_way) or (its.parent == p and not its.other_way):
            return 1.0
        enough = mine.neighbours <= self.config.enough_neighbours
        return self.config.spare_value if enough else self.config.surplus_value

    def heard_label(
        self, before: list[dict[int, Label]], p: int, t: int, mates: list[int], offered: int | None
    ) -> Label:
        now, old = self.network.now, before[p][t]
        tomb = old.tomb
        parent_there = old.parent in mates
        if old.parent is not None:
            its = before[old.parent][t] if parent_there else None
            if its is None or rank(t, its.root) > rank(t, old.root):
                tomb = old.root, old.tick, old.hops
        best = (rank(t, p), 0, LAST), Label(p, now)
        for q in mates:
            its = before[q][t]
            echo = tomb and its.root == tomb[0] and its.tick <= tomb[1] and its.hops > tomb[2]
            if its.root == p or its.parent == p or echo or its.hops + 1 >= 60:
                continue
            order = rank(t, its.root), its.hops + 1, 0 if old.parent == q else link_tie(p, q)
            best = min(best, (order, Label(its.root, its.tick, its.hops + 1, q)), key=lambda pair: pair[0])
        new, advanced, changed = best[1], old.advanced, old.changed
        if new.root != old.root:
            advanced = changed = now
        elif new.tick > old.tick or new.parent is None:
            advanced = now
        elif now - advanced > self.config.stall_rounds:
            tomb = new.root, old.tick, -1
            new, advanced, changed = Label(p, now), now, now
        else:
            new.tick = old.tick
        new.advanced, new.changed, new.tomb, new.neighbours = advanced, changed, tomb, len(mates)
        same = [q for q in mates if before[q][t].root == old.root]
        new.other_way = any(
            before[q][t].hops <= old.hops and q != old.parent and before[q][t].parent != p for q in same
        )
        offers = [(offered, p, 0)] if offered is not None else []
        for q in same:
            theirs = before[q][t].offer
            if before[q][t].parent == p and theirs and theirs[2] < 60:
                offers.append((theirs[0], theirs[1], theirs[2] + 1))
        new.offer = min(offers, key=lambda o: (offer_hash(t, o[0]), offer_hash(t, o[1])), default=None)
        if new.root == p:
            new.choice = new.offer[:2] if new.offer else None
        elif parent_there and old.parent in same:
            assert old.parent is not None
            new.choice = before[old.parent][t].choice
        elif parent_there or old.parent is None:
            new.choice = old.choice
        return new

    # Wishes

    def ring_neighbours(self, p: int) -> list[int]:
        near, ids = self.near(p), self.network.nodes
        if not near:
            return []
        after = min(near, key=lambda q: (ids[q].id - ids[p].id) % WORD)
        before = min(near, key=lambda q: (ids[p].id - ids[q].id) % WORD)
        return [after] if after == before else [after, before]

    def partners(self, due: set[int]) -> dict[int, int]:
        draw, now, found = self.network.draw, self.network.now, {}
        for p in sorted(due):
            choice: int | None = None
            if now % 3 == 0 and (ring := self.ring_neighbours(p)):
                choice = ring[0] if len(ring) == 1 or draw(now, p, RING_SIDE) & 1 else ring[1]
            elif now % 3 == 1:
                choice = self.network.one_of(self.network.nodes[p].links, now, p, LINK)
            if choice is None:
                choice = self.network.one_of(self.network.nodes[p].cache, now, p, SAMPLE)
            if choice is not None and self.network.nodes[choice].alive:
                found[p] = choice
        return found

    def wishes(self, due: set[int]) -> tuple[dict[tuple[int, int], int], dict[tuple[int, int], tuple[int, float]]]:
        """Whom nodes ask for the ring, by (node, side), and as friends with their gains, by (node, place)."""
        partner, nodes = self.partners(due), self.network.nodes
        ring: dict[tuple[int, int], int] = {}
        friends: dict[tuple[int, int], tuple[int, float]] = {}
        backups, prospects = {}, {}
        half = self.config.ring_backups
        for p in sorted(due):
            callers = [q for q in sorted(partner) if partner[q] == p]
            turn = (self.network.draw(self.network.now, p, CALLER) >> 32) * max(len(callers), 1) >> 32
            chosen = [callers[(turn + j) % len(callers)] for j in range(min(len(callers), self.config.callers))]
            sources = [p, *([partner[p]] if p in partner else []), *chosen]
            known = {x for q in sources for x in (q, *self.near(q), *(entry[0] for entry in nodes[q].cache))}
            known |= {x for q in sources for x in self.growers[q].prospects}
            everybody = known | {x for q in sources for x in nodes[q].backups if x is not None}
            answer = [x for x in everybody - {p} if nodes[x].alive]
            after = sorted(answer, key=lambda x: (nodes[x].id - nodes[p].id) % WORD)[:half]
            before = sorted(answer, key=lambda x: (nodes[p].id - nodes[x].id) % WORD)[:half]
            backups[p] = [[*row, *[None] * (half - len(row))] for row in (after, before)]
            for side, row in enumerate((after, before)):
                if row and row[0] not in self.near(p):
                    ring[p, side] = row[0]
            gains = {x: self.gain(p, x) for x in known - {p} - set(self.near(p))}
            able = [x for x in gains if gains[x] > 0]
            prospects[p] = sorted(able, key=lambda x: (-gains[x], link_tie(p, x)))[: self.config.prospects]
            for place, x in enumerate(prospects[p][: self.config.requests]):
                friends[p, place] = x, gains[x]
        for p in due:
            nodes[p].backups, self.growers[p].prospects = [*backups[p][0], *backups[p][1]], prospects[p]
        return ring, friends

    def gain(self, p: int, x: int) -> float:
        total, config = 0.0, self.config
        for t in sorted(self.growers[p].labels.keys() & self.growers[x].labels.keys()):
            mine, its = self.growers[p].labels[t], self.growers[x].labels[t]
            if mine.root != its.root and self.is_calm(p, mine) and self.is_calm(x, its):
                total += 1.0
            else:
                total += config.spare_value if mine.neighbours < config.enough_neighbours else config.surplus_value
        return total

    def is_calm(self, p: int, label: Label) -> bool:
        now, config = self.network.now, self.config
        return now - label.changed >= config.patience_rounds or now - self.joined[p] < config.calm_rounds

    # Agreement

    def agree(self, ring: dict[tuple[int, int], int], friends: dict[tuple[int, int], tuple[int, float]]) -> None:
        now = self.network.now
        order = sorted(range(len(self.growers)), key=lambda p: self.network.draw(now, p, TURN))
        margins = [self.margin(p) for p in range(len(self.growers))]
        for side in range(2):
            for p in order:
                if (p, side) in ring:
                    self.ask_for_ring(p, side, ring[p, side])
        for place in range(self.config.requests):
            for p in order:
                if (p, place) in friends:
                    self.ask_friend(p, *friends[p, place], margins)

    def margin(self, p: int) -> float:
        own, config = self.growers[p], self.config
        if self.network.now - own.lost < config.calm_rounds:
            return config.margin_after_loss
        return config.margin + config.stiffness * math.log2(own.interval)

    def ask_for_ring(self, p: int, side: int, q: int) -> None:
        nodes = self.network.nodes
        if not nodes[q].alive or q in self.near(p):
            return

        def steps(x: int) -> int:
            return (nodes[q].id - nodes[x].id if side == 0 else nodes[x].id - nodes[q].id) % WORD

        nearest = min(self.there(q), key=steps, default=None)
        if nearest is not None and steps(nearest) < steps(p):
            nodes[p].backups[(side + 1) * self.config.ring_backups - 1] = nearest
        else:
            self.connect(p, q, PROTECTED, PROTECTED)

    def ask_friend(self, p: int, q: int, gain: float, margins: list[float]) -> None:
        cost = self.weakest(p)[1]
        if q in self.near(p) or (cost > 0 and gain <= cost + margins[p]):
            return
        if not self.network.nodes[q].alive:
            self.growers[p].prospects = [x for x in self.growers[p].prospects if x != q]
            return
        others, its = self.gain(q, p), self.weakest(q)[1]
        if cost + its <= 0:
            wins = gain + others > 0
        else:
            wins = 0.5 * (gain + others) > cost + its + max(margins[p], margins[q])
        if wins:
            self.connect(p, q, gain, others)

    def weakest(self, p: int) -> tuple[int | None, float]:
        row, values = self.network.nodes[p].links, self.growers[p].values
        if None in row:
            return row.index(None), 0.0
        able = [(values[link[0]], link_tie(p, link[0]), slot) for slot, link in enumerate(row) if link]
        value, _, slot = min(able)
        return (slot, value) if value < PROTECTED else (None, PROTECTED)

    def connect(self, p: int, q: int, mine: float, its: float) -> None:
        if self.weakest(p)[0] is None or self.weakest(q)[0] is None:
            return
        for one, other, value in ((p, q, mine), (q, p, its)):
            slot = self.weakest(one)[0]
            assert slot is not None
            if link := self.network.nodes[one].links[slot]:
                if one in self.near(link[0]):
                    self.growers[link[0]].freed = self.network.now
                self.drop(link[0], one)
            self.network.nodes[one].links[slot] = (other, self.network.now)
            self.growers[one].values[other], self.growers[one].made[other] = value, self.network.now
