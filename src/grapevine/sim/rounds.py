"""The round engine: a system on a network, driven round by round, with churn, changes of interest, and measurements.

rounds = Rounds("vitis", workload, VitisConfig(table_size=20), seed=7)
for _ in range(160):
    rounds.step()
"""

from __future__ import annotations

from collections.abc import Callable
from threading import Lock
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from grapevine.blocks.network import Network
from grapevine.blocks.profiles import Profiles, mark, new_marks, utility
from grapevine.blocks.small_world import PREDECESSOR, SUCCESSOR, lookup
from grapevine.blocks.views import NOBODY, PUBLISHER, Views
from grapevine.kernels import csr
from grapevine.kernels.csr import Columns, Starts
from grapevine.kernels.jit import njit
from grapevine.kernels.rng import below, draw
from grapevine.metrics.diameters import overlay_diameters, topic_diameters
from grapevine.metrics.overlay import ring_correctness, topic_clusters
from grapevine.model.config import Config
from grapevine.model.errors import UsageError
from grapevine.model.workload import Csr, Workload
from grapevine.sim.churn import Schedule, everyone
from grapevine.sim.dissemination import EVENT_FIELDS, LOAD_FIELDS, Publications, disseminate, no_totals
from grapevine.sim.event_graph import Medium
from grapevine.systems.contracts.rounds import RoundSystem
from grapevine.systems.registry import system_named

RATE_ONE = 2**16  # the mean rate as a whole number, so that sums of loads do not depend on their order


class Traffic(NamedTuple):
    """What became of published events. Loads and deliveries are weighted by topic rates whose mean is 1."""

    events: dict[str, NDArray[Any]]  # columns of the table `events`, a row per event in the order of topics
    load: dict[str, NDArray[np.float64]]  # by node: wanted, duplicate, unwanted
    hops: dict[str, NDArray[Any]]  # columns of the table `delivery_hops`


class Rounds:
    """A simulation in progress: `step` it, publish events on it, measure it. The command's way through is
    `sim/simulate`.

    `network` is the state, `system` the protocol on it; `joined` and `left` count who came and went since the start.
    """

    def __init__(
        self,
        system: str,
        workload: Workload,
        config: Config,
        *,
        seed: int = 1,
        threads: int = 1,
        schedule: Schedule | None = None,
        always_gossip: bool = False,
        owners: bool = False,
        network: Callable[..., Network] = Network,
    ) -> None:
        """A network on which the named system has done nothing yet; those whom the schedule has first are online.

        `config` is the system's. `schedule` says who comes and goes (default: everybody is there and stays).
        `always_gossip`: what neighbours tell each other is done in every round also where nothing but links changes.
        `owners`: topics are published by their owner, where the workload knows one, instead of a random subscriber. An
        owner that does not subscribe looks its topic up; systems without lookups count it as interested, so that it
        gets links for the topic (SpiderCast §2.1). `network` makes the network (`sim/parts` has one whose rounds are
        done elsewhere).
        """
        self.workload, self.schedule = workload, schedule or everyone(workload.node_count)
        self.network = network(
            workload,
            sample_size=getattr(config, "sample_size", 0),
            ring_backups=getattr(config, "ring_backups", 0),
            settle_rounds=getattr(config, "settle_rounds", 0),
            seed=seed,
            threads=threads,
        )
        self.owners = workload.publishers if owners else np.full(workload.topic_count, NOBODY, np.int32)
        self.name, facet = system, system_named(system).round_facet()
        if owners and not facet.ring_slots:
            self.network.set_interests(with_owners(workload.node_topics, self.owners))
        self.system = facet(config, self.network)
        self.network.open_at_once(self.schedule.first)
        self.joined, self.left = len(self.schedule.first), 0
        # What neighbours tell each other about topics matters to nobody until an event is published. While links
        # change by churn it is done in every round; otherwise it is left to `settle`, which ends in the same state.
        self.always_gossip = always_gossip or bool(self.schedule.changes)
        self._new_interests: dict[tuple[int, int], bool] = {}  # (node, topic) → whether it is wanted from now on

    @property
    def now(self) -> int:
        """The number of rounds that are done; the first is round 1."""
        return self.network.now

    def subscribe(self, node: int, topic: int) -> None:
        """From the next round on, the node wants the topic. UsageError if there is no such node or topic."""
        self._set_interest(node, topic, True)

    def unsubscribe(self, node: int, topic: int) -> None:
        """From the next round on, the node does not want the topic. UsageError if there is no such node or topic."""
        self._set_interest(node, topic, False)

    def _set_interest(self, node: int, topic: int, wanted: bool) -> None:
        if not (0 <= node < self.network.size and 0 <= topic < len(self.network.topic_ids)):
            known = f"{self.network.size} nodes and {len(self.network.topic_ids)} topics"
            raise UsageError(f"node {node}, topic {topic}: there are {known}, numbered from 0")
        self._new_interests[node, topic] = wanted

    def step(self) -> None:
        """One round: who comes and goes, new interests, then what the system does."""
        self.network.now += 1
        self._apply_churn()
        self._apply_interests()
        self.system.round()
        if self.always_gossip:
            self.system.gossip()

    def _apply_churn(self) -> None:
        change = self.schedule.changes.get(self.now)
        if change is None:
            return
        gone = np.union1d(change.leaves, change.crashes).astype(np.int32)
        self.system.say_goodbye(change.leaves)
        self.network.leave(gone)
        self.network.join(change.joins)
        self.system.forget(np.union1d(gone, change.joins).astype(np.int32))
        self.left += len(gone)
        self.joined += len(change.joins)

    def _apply_interests(self) -> None:
        if not self._new_interests:
            return
        profiles = self.network.profiles
        rows = csr.row_numbers(profiles.starts)
        pairs = set(zip(rows.tolist(), profiles.topics.tolist(), strict=True))
        changed = sorted({pair[0] for pair, wanted in self._new_interests.items() if wanted != (pair in pairs)})
        for pair, wanted in self._new_interests.items():
            (pairs.add if wanted else pairs.discard)(pair)
        self._new_interests.clear()
        nodes, topics = np.array(sorted(pairs), np.int32).reshape(-1, 2).T
        topic_count = len(self.network.topic_ids)
        starts, columns = csr.from_pairs(
            np.ascontiguousarray(nodes), np.ascontiguousarray(topics), self.network.size, topic_count
        )
        self.network.set_interests(Csr(starts, columns))
        self.system.interests_changed(np.array(changed, np.int32))

    def settle(self, topics: tuple[int, int]) -> None:
        """Bring what neighbours tell each other up to date for the topics first … last-1, unless every round does it.

        To be called before events are published, whenever links have changed.
        """
        if not self.always_gossip:
            self.system.settle(topics)

    def publish(self, topics: NDArray[np.int32], *, grace_rounds: int = 0) -> Traffic:
        """Publish one event on each of these topics that has a subscriber to publish it. The network does not change.

        Subscribers that joined less than `grace_rounds` ago do not count; nor do they publish.
        """
        network, counted = self.network, self._counted(grace_rounds)
        starts, nodes = network.topic_nodes.starts, network.topic_nodes.columns
        publishers = choose_publishers(network.seed, self.now, topics, starts, nodes, counted, self.owners)
        topics, publishers = topics[publishers != NOBODY], publishers[publishers != NOBODY]
        events = np.zeros((len(topics), len(EVENT_FIELDS)), np.int64)
        medium, total, adding = self.medium(), no_totals(network.size), Lock()
        weights = np.round(network.rates / network.rates.mean() * RATE_ONE).astype(np.int64)
        publications = Publications(topics, publishers, weights, counted)

        def work(first: int, last: int) -> None:
            own = no_totals(network.size)
            disseminate((first, last), publications, medium, events, own)
            with adding:
                for of_all, of_some in zip(total, own, strict=True):
                    np.add(of_all, of_some, out=of_all)

        network.in_chunks(work, len(topics), network.topic_nodes.sizes()[topics])
        rate = network.rates[topics]
        shown: dict[str, NDArray[Any]] = {
            "round": np.full(len(topics), self.now, np.int32),
            "topic": topics,
            "publisher": publishers,
            "rate": rate,
        }
        load, hops = total.load / RATE_ONE, np.flatnonzero(total.deliveries)
        return Traffic(
            shown | {name: events[:, i] for i, name in enumerate(EVENT_FIELDS)},
            {name: load[:, i] for i, name in enumerate(LOAD_FIELDS)},
            {
                "round": np.full(len(hops), self.now, np.int32),
                "hops": hops.astype(np.int32),
                "deliveries": total.deliveries[hops] / RATE_ONE,
            },
        )

    def _counted(self, grace_rounds: int) -> NDArray[np.bool_]:
        """Flags of the online nodes that have been there for so many rounds; without churn, of all online nodes."""
        network = self.network
        old = self.now - network.joined >= grace_rounds
        return network.alive & old if self.schedule.changes else network.alive

    def connected_topics(self, topics: tuple[int, int], *, grace_rounds: int = 0) -> float | None:
        """The share of the topics first … last-1 whose counted subscribers form one cluster, among those with at least
        two of them; None: there is no such topic."""
        found = self.topic_clusters(topics, counted=self._counted(grace_rounds))
        served = found[:, 0] > 1
        return float((found[served, 1] == 1).mean()) if served.any() else None

    def medium(self) -> Medium:
        """What events travel through now; lookups use links alone that were heard in this round."""
        return medium_now(self.network, self.system, self.now)

    def ring_correctness(self) -> float | None:
        """The share of settled nodes with their true ring neighbours; None for systems without a ring."""
        if not self.system.ring_slots:
            return None
        views = self.network.views
        rows = views.starts[:-1]
        there, after, before = (
            views.alive & views.settled,
            views.links[rows + SUCCESSOR],
            views.links[rows + PREDECESSOR],
        )
        return ring_correctness(self.network.ids, there, after, before)

    def mean_utility(self, *, nodes: int = 1_000) -> float | None:
        """The mean of Vitis Eq. 1 over the links of the first so many nodes; None when they have none."""
        total, count = link_utility(min(nodes, self.network.size), self.network.profiles, self.network.views)
        return total / count if count else None

    def lookup_hops(self, *, lookups: int = 1_000) -> float | None:
        """Mean hops of lookups from random online nodes to random topics; None without a ring, or with nobody online.

        A lookup that a dead node swallowed counts with the hops that it made. Of a system that looks nothing up, these
        are the hops of its own routes; None if none of them arrived.
        """
        online = np.flatnonzero(self.network.alive).astype(np.int32)
        if not self.system.ring_slots or len(online) == 0:
            return None
        if self.system.routes_to_nodes:
            return self.system.route_hops(lookups)
        network = self.network
        return float(
            mean_lookup(network.seed, self.now, lookups, online, network.topic_ids, network.ids, network.views)
        )

    def topic_clusters(
        self, topics: tuple[int, int] | None = None, *, counted: NDArray[np.bool_] | None = None
    ) -> NDArray[np.int64]:
        """Per topic first … last-1 (default: all) a row: online subscribers that count, their clusters, and how many of
        them are in the largest.

        `counted` has a flag per node (default: all who are online). Who does not count connects others nevertheless.
        """
        network, links = self.network, self.network.neighbours()
        first, last = topics or (0, len(network.topic_ids))
        alive, count = network.alive, network.alive if counted is None else counted
        out = np.zeros((len(network.topic_ids), 3), np.int64)
        subscribers = network.topic_nodes.starts, network.topic_nodes.columns
        both_ways = links.starts, links.columns
        network.in_chunks(
            lambda a, b: topic_clusters(first + a, first + b, subscribers, both_ways, alive, count, out),
            last - first,
            network.topic_nodes.sizes()[first:last],
        )
        return out[first:last]

    def topic_diameters(self, topics: NDArray[np.int32]) -> NDArray[np.int64]:
        """The longest shortest path, in hops, inside a cluster of each topic's online subscribers."""
        return self._diameters(topic_diameters, topics)

    def overlay_diameters(self, topics: NDArray[np.int32]) -> NDArray[np.int64]:
        """The longest shortest path, in hops, between each topic's online subscribers by way of any online node; -1
        where they do not all reach each other."""
        return self._diameters(overlay_diameters, topics)

    def _diameters(self, measure: Callable[..., None], topics: NDArray[np.int32]) -> NDArray[np.int64]:
        network, links = self.network, self.network.neighbours()
        out = np.zeros(len(topics), np.int64)
        subscribers = network.topic_nodes.starts, network.topic_nodes.columns
        measure(topics, subscribers, (links.starts, links.columns), network.alive, out)
        return out


def with_owners(node_topics: Csr, owners: Columns) -> Csr:
    """Everybody's interests, with every topic's owner (NOBODY: it has none) among those who want it."""
    owned = np.flatnonzero(owners != NOBODY).astype(np.int32)
    pairs = np.stack([csr.row_numbers(node_topics.starts), node_topics.columns])
    nodes, topics = np.unique(np.concatenate([pairs, [owners[owned], owned]], axis=1), axis=1).astype(np.int32)
    starts, columns = csr.from_pairs(nodes.copy(), topics.copy(), len(node_topics.starts) - 1, len(owners))
    return Csr(starts, columns)


def medium_now(network: Network, system: RoundSystem, fresh: int) -> Medium:
    """What events travel through; lookups do not use links last heard before the round `fresh`."""
    links, delivery = network.neighbours(), system.delivery()
    return Medium(
        network.topic_nodes.starts,
        network.topic_nodes.columns,
        delivery.gateways,
        delivery.floods,
        delivery.spanning,
        links.starts,
        links.columns,
        network.views,
        fresh,
        network.ids,
        network.topic_ids,
        delivery.homes,
        delivery.ways,
    )


@njit
def choose_publishers(
    seed: int,
    now: int,
    topics: Columns,
    starts: Starts,
    nodes: Columns,
    counted: NDArray[np.bool_],
    owner: Columns,
) -> Columns:
    """For each topic its owner if it counts, otherwise a random subscriber that counts, or NOBODY.

    `starts` and `nodes` are the subscribers of all topics as rows, `owner` has an entry per topic.
    """
    out = np.full(len(topics), NOBODY, np.int32)
    for i in range(len(topics)):
        topic = topics[i]
        if owner[topic] != NOBODY and counted[owner[topic]]:
            out[i] = owner[topic]
            continue
        able = 0
        for node in nodes[starts[topic] : starts[topic + 1]]:
            able += counted[node]
        if able == 0:
            continue
        skip = below(draw(seed, now, topic, PUBLISHER), able)
        for node in nodes[starts[topic] : starts[topic + 1]]:
            if counted[node]:
                if skip == 0:
                    out[i] = node
                    break
                skip -= 1
    return out


@njit
def link_utility(count: int, profiles: Profiles, views: Views) -> tuple[float, int]:
    """Summed utility and number of the links of the first `count` nodes."""
    marks = new_marks(profiles)
    total, links = 0.0, 0
    for p in range(count):
        mark(p, profiles, marks)
        for q in views.links[views.starts[p] : views.starts[p + 1]]:
            if q != NOBODY:
                total += utility(p, q, profiles, marks)
                links += 1
    return total, links


@njit
def mean_lookup(
    seed: int, now: int, lookups: int, online: Columns, keys: NDArray[np.uint64], ids: NDArray[np.uint64], views: Views
) -> float:
    """Mean hops of so many lookups from random online nodes to random keys; those that were swallowed count, too."""
    path, total = np.empty(len(ids) + 1, np.int32), 0
    for i in range(lookups):
        start = online[below(draw(seed, now, i, PUBLISHER), len(online))]
        total += abs(lookup(start, keys[below(draw(seed, now, i, 0), len(keys))], now, ids, views, path)) - 1
    return total / max(lookups, 1)
