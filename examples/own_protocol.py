"""A protocol of your own, beside the published ones: declared, registered, simulated and compared in one file.

    python examples/own_protocol.py --nodes 1000 --rounds 60

The idea, called *kindred*: a node hears of others by gossip, and links to those with which it has the most topics in
common; two further links close a ring of all nodes. Events flood the links between subscribers. Subscribers of a topic
that have no such links to the others form islands, so on every island somebody looks the topic up along the ring, and
the paths of these lookups join the islands: who does so is decided by each node alone, see `find_speakers`.

Most of it is in Vitis, which elects who looks a topic up, and has long links. The table shows what that is worth.
"""

from __future__ import annotations

import argparse
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from grapevine import UsageError, simulate
from grapevine.blocks import exchange, ring_rows, small_world
from grapevine.blocks.exchange import Exchange, NewRows, Rules, Select
from grapevine.blocks.profiles import Profiles
from grapevine.blocks.small_world import Ids
from grapevine.kernels.csr import find
from grapevine.kernels.jit import njit
from grapevine.kernels.overlap import common
from grapevine.kernels.ring import ring_distance
from grapevine.metrics.headlines import BRIEF
from grapevine.synthetic import generate
from grapevine.systems.contracts.configs import RingConfig
from grapevine.systems.contracts.rounds import Delivery, GossipSystem
from grapevine.systems.registry import System, register

Rows = tuple[NDArray[np.int64], NDArray[np.int32]]  # where each row starts, and the entries of all rows


@dataclass(frozen=True, slots=True, kw_only=True)
class KindredConfig(RingConfig):
    """Kindred has the parameters of every ring (`table_size` and others), and none of its own."""


@njit
def in_common(p: int, q: int, profiles: Profiles) -> int:
    """How many topics two nodes share."""
    starts, topics = profiles.starts, profiles.topics
    return common(topics[starts[p] : starts[p + 1]], topics[starts[q] : starts[q + 1]])


@njit
def choose_links(this: Exchange, rows: tuple[int, int], profiles: Profiles, out: NewRows) -> None:
    """One round for the rows first … last-1: gather whom their nodes hear of, close the ring, take the most similar."""
    heard_of, near = exchange.new_entries(rows, this), small_world.new_nearest(this.views.backups.shape[1])
    shared = np.empty(len(heard_of.nodes), np.int64)
    for p in range(rows[0], rows[1]):
        node = this.views.nodes[p]
        exchange.stay_away(p, this, out)  # an empty table, to begin with
        if not this.views.alive[node]:
            continue
        others, _, count = ring_rows.fill_ring(p, this, profiles.ids, heard_of, near, out)
        for i in range(others, count):
            shared[i] = in_common(node, heard_of.nodes[i], profiles)
        first, last = this.views.starts[p], this.views.starts[p + 1]
        for slot in range(first + small_world.RING_SLOTS, last):
            most = -1
            for i in range(others, count):  # a node may stand there several times, and may be a link already
                if shared[i] > most and not (out.links[first:slot] == heard_of.nodes[i]).any():
                    out.links[slot], most = heard_of.nodes[i], shared[i]
        exchange.hear(p, this, out)


@njit
def find_speakers(ids: Ids, topic_ids: Ids, topics: Rows, links: Rows) -> NDArray[np.bool_]:
    """Who looks a topic up: the subscribers that are nearer to its id on the ring than all their neighbours among them.

    Every island has one, its nearest member; it may have more. `topics` has the subscribers of every topic, `links` the
    neighbours of every node; the answer is in the order of `topics`.
    """
    (topic_starts, subscribers), (link_starts, neighbours) = topics, links
    speaks = np.ones(len(subscribers), np.bool_)
    for topic in range(len(topic_ids)):
        first, last = topic_starts[topic], topic_starts[topic + 1]
        for at in range(first, last):
            p = subscribers[at]
            for q in neighbours[link_starts[p] : link_starts[p + 1]]:
                nearer = ring_distance(ids[q], topic_ids[topic]) < ring_distance(ids[p], topic_ids[topic])
                if nearer and find(subscribers, first, last, q) >= 0:
                    speaks[at] = False
    return speaks


def prepare(_: KindredConfig, profiles: Profiles, __: Mapping[str, Any], ___: Mapping[str, Any]) -> Select:
    """What one round of gossip calls."""
    return lambda rows, this, out: choose_links(this, rows, profiles, out)


class Kindred(GossipSystem):
    """Kindred on a network: the contract is `grapevine.systems.contracts.rounds`."""

    config_type = KindredConfig
    config: KindredConfig
    ring_slots = small_world.RING_SLOTS

    def row_sizes(self) -> NDArray[np.int64]:
        return np.full(self.network.size, self.config.table_size, np.int64)

    def slot_kinds(self, size: int) -> list[str]:
        return ["successor", "predecessor"] + ["kindred"] * (size - small_world.RING_SLOTS)

    def rules(self) -> Rules:
        return Rules(prepare, self.config, {})

    def delivery(self) -> Delivery:
        network, topics, links = self.network, self.network.topic_nodes, self.network.neighbours()
        rows = (topics.starts, topics.columns), (links.starts, links.columns)
        speaks = find_speakers(network.ids, network.topic_ids, *rows)
        return Delivery(floods=True, gateways=speaks & network.alive[topics.columns])


register(System(name="kindred", paper="this example", summary="the most similar nodes, and a ring", rounds=Kindred))


def compare(nodes: int, rounds: int) -> None:
    """Simulate kindred, Vitis and RVR on the same workload, and print what came out."""
    workload = generate("vitis-high", nodes=nodes)
    print(workload)
    print(f"{'system':10}" + "".join(f"{metric.label:>12}" for metric in BRIEF), flush=True)
    for system in ("kindred", "vitis", "rvr"):
        found = simulate(system, workload, rounds=rounds).summary
        print(f"{system:10}" + "".join(f"{metric.shown(found[metric.name]):>12}" for metric in BRIEF), flush=True)


def main() -> None:
    """Read the arguments, and compare."""
    asked = argparse.ArgumentParser(description="A protocol of one's own beside two others.")
    asked.add_argument("--nodes", type=int, default=1_000, help="nodes of the simulated network")
    asked.add_argument("--rounds", type=int, default=60, help="rounds of gossip before events are published")
    try:
        compare(**vars(asked.parse_args()))
    except KeyboardInterrupt:
        raise SystemExit(130) from None
    except UsageError as error:
        raise SystemExit(f"error: {error}") from None


if __name__ == "__main__":
    main()
