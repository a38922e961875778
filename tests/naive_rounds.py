"""Slow, obvious rounds: Newscast, T-Man, Vitis, RVR, OPT and the way of events, in plain Python.

Written from the definitions (the paper's algorithms and the docstrings), to be compared bit by bit with the kernels.
All randomness is `draw(seed, round, node, salt, …)`. A hash settles the ties. These orders still matter:

- A node's contacts are its partner, then its callers by number.
- A cache holds those just met first, then the others in descending freshness, each age in order of arrival: from one's
  own cache, then from the contacts'. Only the age that does not fit is ordered by hash.
- In elections the tie hash takes members by their place in the topic's subscriber list.
- An event is passed on to members in ascending order, then along tree edges, ordered by when their lower end entered
  the graph: subscribers first, then relays as the lookups find them. It decides who is the first to tell a node.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from typing import TypeVar

from tests.naive import WORD, draw

SAMPLE_PARTNER, EXCHANGE_PARTNER, SAMPLE_TIES, LONG_LINKS, BOOTSTRAP, _, GATEWAY_TIES = range(1, 8)
FRIEND_TIES, ACCEPTANCE = 2**40, 2**41

T = TypeVar("T")
Entry = tuple[int, int]  # a node's number, and the round in which somebody last heard from it
Proposal = tuple[int, int, int]  # gateway, parent, hops
Chosen = tuple[list[Entry | None], list[int | None]]  # a table, and ring backups
Load = tuple[int, int, int]  # notifications: wanted, duplicate, unwanted


@dataclass
class Node:
    number: int
    id: int
    topics: set[int]
    alive: bool = False
    settles: int = 0  # the round from which others may use it on the ring
    links: list[Entry | None] = field(default_factory=list)  # by slot; slots beyond the end are free
    cache: list[Entry] = field(default_factory=list)  # in descending freshness
    backups: list[int | None] = field(default_factory=list)  # the next on the ring: clockwise, then counter-clockwise


def padded(row: Sequence[T], size: int) -> list[T | None]:
    return [*row, *[None] * size][:size]


def distance(a: int, b: int) -> int:
    return min((a - b) % WORD, (b - a) % WORD)


class NaiveNetwork:
    def __init__(
        self,
        ids: Sequence[int],
        topics: Sequence[set[int]],
        rates: Sequence[float],
        *,
        seed: int,
        sample_size: int,
        ring_backups: int = 0,
        settle_rounds: int = 0,
        most_links: int | None = None,
    ) -> None:
        self.seed, self.sample_size, self.ring_backups, self.now = seed, sample_size, ring_backups, 0
        self.most_links, self.settle_rounds = most_links, settle_rounds
        self.nodes = [Node(number, id, mine) for number, (id, mine) in enumerate(zip(ids, topics, strict=True))]
        equal, top = min(rates) == max(rates), max(rates)
        self.weights = [1 if equal else round(rate / top * 2**40) for rate in rates]
        self.subscribers = [[p.number for p in self.nodes if topic in p.topics] for topic in range(len(rates))]
        self.proposals: dict[tuple[int, int], Proposal] = {}  # by (topic, member)

    def draw(self, *words: int) -> int:
        return draw(self.seed, *words)

    def one_of(self, entries: Iterable[Entry | None], *words: int) -> int | None:
        there = [entry[0] for entry in entries if entry]
        return there[(self.draw(*words) >> 32) * len(there) >> 32] if there else None

    # Joining (Algorithm 1) and leaving

    def open_at_once(self, numbers: Sequence[int]) -> None:
        """Everyone starts with random others; the draws count places in `numbers`."""
        for place, number in enumerate(numbers):
            known: list[int] = []
            tries = 0
            while len(known) < min(self.sample_size, len(numbers) - 1):
                other = self.draw(tries, place, BOOTSTRAP) % len(numbers)
                tries += 1
                if other != place and other not in known:
                    known.append(other)
            self.nodes[number].cache = [(numbers[other], self.now) for other in known]
            self.nodes[number].alive, self.nodes[number].settles = True, self.now

    def join(self, numbers: Sequence[int]) -> None:
        """Each starts with a random online node and what that one knows; and near its place on the ring, looked up."""
        online = [(p.number, self.now) for p in self.nodes if p.alive]
        for number in numbers:
            helper = self.one_of(online, self.now, number, BOOTSTRAP)
            assert helper is not None
            known = [entry for entry in self.nodes[helper].cache if entry[0] != number]
            self.nodes[number].cache = [(helper, self.now), *known][: self.sample_size]
            if self.ring_backups:
                path = self.lookup(helper, self.nodes[number].id, self.now - 1)
                nearest = [q for q in path if self.nodes[q].alive][-1]
                self.nodes[number].backups = [*self.nodes[nearest].backups[:-1], nearest]
        for number in numbers:
            self.nodes[number].alive, self.nodes[number].settles = True, self.now + self.settle_rounds

    def say_goodbye(self, numbers: Sequence[int]) -> None:
        for p in self.nodes:
            p.links = [None if link and link[0] in numbers else link for link in p.links]

    def leave(self, numbers: Sequence[int]) -> None:
        for p in (self.nodes[number] for number in numbers):
            p.alive, p.links, p.cache, p.backups = False, [], [], []
            for topic in p.topics:
                self.proposals.pop((topic, p.number), None)

    # Gossip: everything reads the state at the start of the round. The dead know nobody, so they take no part.

    def contacts(self, choices: list[int | None]) -> list[list[int]]:
        """Whom each node meets: its choice, if that one lives, and everyone who chose it."""
        partner = [q if q is not None and self.nodes[q].alive else None for q in choices]
        callers = [[q for q, called in enumerate(partner) if called == p] for p in range(len(partner))]
        return [([] if q is None else [q]) + calling for q, calling in zip(partner, callers, strict=True)]

    def sample(self) -> None:
        """A round of Newscast: exchange caches with a random member of one's own."""
        met = self.contacts([self.one_of(p.cache, self.now, p.number, SAMPLE_PARTNER) for p in self.nodes])
        caches = [self.freshest(p, met[p.number]) for p in self.nodes]
        for p, cache in zip(self.nodes, caches, strict=True):
            p.cache = cache

    def freshest(self, p: Node, met: list[int]) -> list[Entry]:
        """The new cache: those just met, then age by age; the hash decides in the age that does not fit."""
        offers = [entry for q in (p.number, *met) for entry in self.nodes[q].cache]
        ages = sorted({heard for _, heard in offers}, reverse=True)
        cache: dict[int, int] = {}
        for level in [[(q, self.now) for q in met]] + [[entry for entry in offers if entry[1] == age] for age in ages]:
            new = dict(entry for entry in level if entry[0] != p.number and entry[0] not in cache)
            kept, room = list(new), self.sample_size - len(cache)
            if len(new) > room:
                kept.sort(key=lambda q: self.draw(self.now, p.number, SAMPLE_TIES, q) >> 33, reverse=True)
            cache.update((q, new[q]) for q in kept[:room])
        return list(cache.items())

    def exchange(self, select: Select, *, ring_slots: int, max_age: int) -> None:
        """A round of T-Man, every other one with a ring link (Algorithms 2, 3); then heartbeats (6, 7)."""
        choices = []
        for p in self.nodes:
            preferred = p.links[:ring_slots] if self.now % 2 else []
            there = next((some for some in (preferred, p.links, p.cache) if any(some)), [])
            choices.append(self.one_of(there, self.now, p.number, EXCHANGE_PARTNER))
        met, found, full = self.contacts(choices), [], self.full(ring_slots)
        for p in self.nodes:
            heard = self.gather(p, met[p.number], self.now - max_age)
            own = {link[0] for link in p.links if link and link[1] >= self.now - max_age}
            pool = [q for q in heard if q in own or q not in full or p.number in full]
            for q in (q for other in (p.number, *met[p.number]) for q in self.nodes[other].backups):
                if q is not None and q != p.number:
                    heard[q] = max(heard.get(q, 0), self.now - 1)  # it was alive in the last round
            ring, backups = self.ring_links(p, [q for q in heard if self.nodes[q].alive])
            picks = select(self, p, ring[:ring_slots], pool)  # backups serve the ring alone
            found.append(([None if q is None else (q, heard[q]) for q in picks], backups))
        if self.most_links is not None:
            found = self.accept(found, ring_slots, self.most_links - 2 * ring_slots)
        for p, (table, p.backups) in zip(self.nodes, found, strict=True):
            p.links = [(link[0], self.now) if link and self.nodes[link[0]].alive else link for link in table]

    # Links that need consent

    def connected(self, ring_slots: int) -> list[set[int]]:
        """With whom every node has a connection, by whoever's link, but for links of the ring."""
        near: list[set[int]] = [set() for _ in self.nodes]
        for p in self.nodes:
            for link in filter(None, p.links[ring_slots:]):
                near[p.number].add(link[0])
                near[link[0]].add(p.number)
        return near

    def full(self, ring_slots: int) -> set[int]:
        """Who has no room for another connection."""
        if self.most_links is None:
            return set()
        room = self.most_links - 2 * ring_slots
        return {p for p, near in enumerate(self.connected(ring_slots)) if len(near) >= room}

    def accept(self, found: list[Chosen], ring_slots: int, room: int) -> list[Chosen]:
        """What everybody gets of the tables that they want: the nearest on the ring; others as far as there is room."""
        tables = [list(table) for table, _ in found]
        backups = [list(kept) for _, kept in found]
        for slot in range(ring_slots):
            self.grant_ring(slot, tables, backups)

        def of(links: Sequence[Entry | None]) -> list[int]:
            return [link[0] for link in links[ring_slots:] if link]

        wanted = [of(table) for table in tables]
        for p in self.nodes:  # the dead that nobody wants any more are let go
            p.links = [
                link if i < ring_slots or not link or self.nodes[link[0]].alive or link[0] in wanted[p.number] else None
                for i, link in enumerate(p.links)
            ]
        before, near = [of(p.links) for p in self.nodes], self.connected(ring_slots)
        free = [room - len(some) for some in near]
        given_up = [
            [r for r in before[p] if r not in wanted[p] and p not in before[r] and p not in wanted[r]]
            for p in range(len(self.nodes))
        ]
        asked, capacity = [], []
        for p in range(len(self.nodes)):
            coin = self.draw(self.now, p, ACCEPTANCE) % 2
            budget = len(given_up[p]) + free[p] // 2 + (coin if free[p] % 2 else 0)
            costly = [q for q in wanted[p] if q not in near[p] and self.nodes[q].alive]
            asked.append(costly[:budget])
            capacity.append(free[p] - max(0, len(asked[p]) - len(given_up[p])))
        granted: list[set[int]] = [set() for _ in self.nodes]
        for q in range(len(self.nodes)):
            callers = [p for p in range(len(self.nodes)) if q in asked[p]]
            for p in sorted(callers, key=lambda p, q=q: self.draw(ACCEPTANCE, q, self.now, p)):
                if p in asked[q]:
                    granted[p].add(q)
                elif capacity[q] > 0:
                    capacity[q] -= 1
                    granted[p].add(q)
        for p, table in enumerate(tables):
            refused = [q for q in of(table) if q not in near[p] | granted[p]]
            table[ring_slots:] = [None if link and link[0] in refused else link for link in table[ring_slots:]]
            back = given_up[p][: max(0, len(given_up[p]) - len(granted[p]))][: len(refused)]
            free_slots = [i for i in range(ring_slots, len(table)) if not table[i]]
            for i, r in zip(free_slots, back, strict=False):
                table[i] = (r, self.now)
        return list(zip(tables, backups, strict=True))

    def grant_ring(self, slot: int, tables: list[list[Entry | None]], backups: list[list[int | None]]) -> None:
        """A node is the successor (slot 0) or predecessor of the nearest settled one that wants it, and of no other."""

        def steps(p: int, q: int) -> int:
            away = self.nodes[q].id - self.nodes[p].id
            return (away if slot == 0 else -away) % WORD

        def target(table: list[Entry | None]) -> int | None:
            link = table[slot] if len(table) > slot else None
            return link[0] if link else None

        wants = [target(table) for table in tables]
        for q in {q for q in wants if q is not None}:
            askers = [p for p, wish in enumerate(wants) if wish == q]
            nearest = min(askers, key=lambda p, q=q: (not self.settled(p), steps(p, q)))
            for p in set(askers) - {nearest}:
                tables[p][slot] = None
                if backups[p]:
                    backups[p][(slot + 1) * self.ring_backups - 1] = nearest

    def ring_links(self, p: Node, answering: list[int]) -> tuple[list[int | None], list[int | None]]:
        """Successor and predecessor among the settled that answer (Algorithm 4, lines 2-7); backups among all."""
        around = sorted(answering, key=lambda q: (self.nodes[q].id - p.id) % WORD)
        backups = padded(around, self.ring_backups) + padded(around[::-1], self.ring_backups)
        settled = [q for q in around if self.settled(q)]
        return padded(settled[:1] + settled[::-1][: len(settled) - 1], 2), backups

    def settled(self, number: int) -> bool:
        return self.nodes[number].settles <= self.now

    def gather(self, p: Node, met: list[int], oldest: int) -> dict[int, int]:
        """All that p learns of in this round, and when anybody last heard from each; not p, nor the long silent."""
        pool: dict[int, int] = {}
        views = [[*self.nodes[q].links, *self.nodes[q].cache] for q in (p.number, *met)]
        for entry in [entry for view in views for entry in view] + [(q, self.now) for q in met]:
            if entry and entry[0] != p.number and entry[1] >= oldest:
                pool[entry[0]] = max(entry[1], pool.get(entry[0], 0))
        return pool

    # Gateways (Algorithm 5) and lookups

    def neighbours(self) -> list[list[int]]:
        """The living neighbours of every node: links count both ways."""
        near: list[set[int]] = [set() for _ in self.nodes]
        for p in self.nodes:
            for link in p.links:
                if link and self.nodes[link[0]].alive:
                    near[p.number].add(link[0])
                    near[link[0]].add(p.number)
        return [sorted(some) for some in near]

    def members(self, topic: int) -> list[int]:
        return [i for i in self.subscribers[topic] if self.nodes[i].alive]

    def elect(self, topic_ids: Sequence[int], *, reach: int, most_rounds: int) -> int:
        """Proposals of all topics until nothing changes; the most rounds that a topic took."""
        near, took = [set(row) for row in self.neighbours()], [0]
        for topic, key in enumerate(topic_ids):
            told = {i: self.proposals.get((topic, i), (i, i, 0)) for i in self.members(topic)}
            for rounds in range(1, most_rounds + 1):
                before = told
                told = {i: self.propose(topic, key, i, near[i], before, reach) for i in before}
                if told == before:
                    break
                took.append(rounds)
            self.proposals.update({(topic, i): told[i] for i in told})
        return max(took)

    def propose(self, topic: int, key: int, i: int, near: set[int], told: dict[int, Proposal], reach: int) -> Proposal:
        """The nearest gateway to the topic's id; then fewest hops, then the hash of the neighbour."""
        place = self.subscribers[topic].index
        options = [(distance(self.nodes[i].id, key), 0, 0, i, i)]
        for j in near & set(told):
            gateway, parent, hops = told[j]
            counts = parent == j or parent not in near | {i}  # line 7; and what came from i does not count
            if counts and hops + 1 < reach:
                tie = self.draw(topic, place(i), GATEWAY_TIES, place(j))
                options.append((distance(self.nodes[gateway].id, key), hops + 1, tie, gateway, j))
        _, hops, _, gateway, parent = min(options)
        return gateway, parent, hops

    def lookup(self, number: int, key: int, fresh: int) -> list[int]:
        """The greedy path to the key over links heard since `fresh`; ends where none is nearer, or at a dead node."""
        path = [number]
        while True:
            known = [path[-1], *(link[0] for link in self.nodes[path[-1]].links if link and link[1] >= fresh)]
            nearest = min(filter(self.settled, known), key=lambda q: distance(self.nodes[q].id, key), default=None)
            if nearest is None or nearest == path[-1]:
                return path
            path.append(nearest)

    # Events (§III-C)

    def topic_graph(
        self,
        topic: int,
        key: int,
        publisher: int,
        near: list[list[int]],
        *,
        floods: bool,
        gateways: set[int],
        fresh: int,
    ) -> dict[int, list[int]]:
        """Whom each carrier of the topic passes events to, in order: links between members, and lookup trees.

        `near` are the `neighbours()` of now, which all topics share.
        """
        members, up = self.members(topic), dict[int, int]()
        graph: dict[int, list[int]] = {i: [] for i in members}

        def climb(start: int) -> None:
            path = [q for q in self.lookup(start, key, fresh) if self.nodes[q].alive]
            graph.update({q: [] for q in path if q not in graph})
            up.update(pairwise(path))

        for i in members:
            if floods:
                graph[i] = [j for j in near[i] if j in members]
            if i in gateways:
                climb(i)
        if publisher not in graph:
            climb(publisher)
        for q in graph:
            if q in up and up[q] not in graph[q]:
                graph[q].append(up[q])
                graph[up[q]].append(q)
        return graph

    def publish(
        self, topic: int, publisher: int, graph: dict[int, list[int]], counted: set[int]
    ) -> tuple[dict[str, int], dict[int, Load]]:
        """One event: its counts, and what each node received. Who gets it first passes it on, but not back."""
        hops, sender, received = {publisher: 0}, {publisher: -1}, Counter[int]()
        queue = [publisher]
        for i in queue:
            for j in graph[i]:
                if j != sender[i]:
                    received[j] += 1
                    if j not in hops:
                        hops[j], sender[j] = hops[i] + 1, i
                        queue.append(j)
        members = set(self.subscribers[topic])
        load = {q: (1, n - 1, 0) if q in members else (0, 0, n) for q, n in received.items()}
        wanted, duplicate, unwanted = (sum(column) for column in zip((0, 0, 0), *load.values(), strict=True))
        others = members & counted - {publisher}
        far = sorted(hops[i] for i in others if i in hops)
        counts = {"subscribers": len(others), "reached": len(far), "relays": len(set(load) - members)}
        counts |= {"wanted": wanted, "duplicate": duplicate, "unwanted": unwanted}
        counts |= {"ids": sum(received.values()), "payloads": len(hops) - 1}  # whoever hears of it pulls it
        counts |= {"hops_sum": sum(far), "hops_max": max(far, default=0)}
        for percent in (50, 95, 99):
            counts[f"hops_p{percent}"] = far[math.ceil(len(far) * percent / 100) - 1] if far else 0
        return counts, load


# Selection: from the ring links and the candidates of one node to its links, by slot

Select = Callable[[NaiveNetwork, Node, list[int | None], list[int]], list[int | None]]


def long_links(network: NaiveNetwork, p: Node, ring: list[int | None], pool: list[int], slots: int) -> list[int | None]:
    """The ring links, then Symphony's long links, each to a target drawn once (Algorithm 4, lines 8-10)."""
    after, before = ring
    if after is None or before is None:
        return padded(ring, slots)
    span = (network.nodes[after].id - network.nodes[before].id) % WORD
    shrink = math.log(max(span / 2, 1.0) / 2.0**63)
    picks = list(ring)
    for slot in range(2, slots):
        bits = network.draw(slot, p.number, LONG_LINKS)
        steps = int(min(math.exp(shrink * ((bits >> 11) / 2**53)), 1.0 - 1e-9) * 2.0**63)
        target = p.id + steps if bits % 2 else p.id - steps
        free = [q for q in pool if q not in picks]
        picks.append(min(free, key=lambda q: distance(network.nodes[q].id, target), default=None))
    return picks


def utility(network: NaiveNetwork, p: Node, q: Node) -> float:
    """Eq. 1."""
    common, all = (sum(network.weights[t] for t in topics) for topics in (p.topics & q.topics, p.topics | q.topics))
    return common / all if all else 0.0


def vitis(table_size: int, structured: int) -> Select:
    """Algorithm 4: ring and long links in the first slots, then the most similar."""

    def select(network: NaiveNetwork, p: Node, ring: list[int | None], pool: list[int]) -> list[int | None]:
        def preference(q: int) -> tuple[int, int]:
            tie = network.draw(FRIEND_TIES, p.number, q) >> 33
            return int(utility(network, p, network.nodes[q]) * 2**31), tie

        picks = long_links(network, p, ring, pool, structured)
        friends = sorted((q for q in pool if q not in picks), key=preference, reverse=True)
        return [*picks, *friends][:table_size]

    return select


def rvr(table_size: int) -> Select:
    """Ring and long links alone."""
    return lambda network, p, ring, pool: long_links(network, p, ring, pool, table_size)


def opt(table_size: int | None, coverage: int) -> Select:
    """Greedy coverage: always the candidate that serves most of the topics still in need, as long as it serves any."""

    def select(network: NaiveNetwork, p: Node, ring: list[int | None], pool: list[int]) -> list[int | None]:
        picks: list[int | None] = []
        need = dict.fromkeys(p.topics, coverage)
        common = {q: p.topics & network.nodes[q].topics for q in pool}
        ties = {q: network.draw(FRIEND_TIES, p.number, q) >> 33 for q in pool}
        while len(picks) != table_size:
            gains = {q: sum(need[topic] > 0 for topic in common[q]) for q in pool if q not in picks}
            best = max(gains, key=lambda q: (gains[q], ties[q]), default=None)
            if best is None or gains[best] == 0:
                break
            picks.append(best)
            for topic in common[best]:
                need[topic] -= 1
        return picks

    return select
