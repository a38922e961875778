"""A generated internet of autonomous systems and what its links cost (Rappel §6.1.1).

The paper takes the AS graph of Zhang et al., which is not at hand, and draws link latencies so that latencies between
hosts come out as PlanetLab's do. So here a graph of as many networks is grown: transit networks are fully meshed, then
every transit-and-stub network and every stub links to a few providers, chosen by their degree.

The paper leaves open whether a link's latency is one way or a round trip, and how packets are routed. Read as one way,
with routes of least latency that no stub carries for others, hosts in random stubs have round trips of 27, 134 and
295 ms (5th, 50th and 95th percentile, means of five seeds; PlanetLab: 19, 134 and 326). Of the other readings, round
trips over the fewest hops come closest: 35, 116 and 218 (docs/papers.md#latency).
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_matrix
from scipy.sparse.csgraph import dijkstra

from grapevine.kernels.jit import njit
from grapevine.kernels.rng import absorb, below, priorities, stream

# Rappel §6.1.1: up to these shares of the links take up to these latencies, evenly in between.
LINK_SHARES = 0.0, 0.1, 0.4, 1.0
LINK_MS = 0.0, 4.0, 30.0, 115.0

_ATTACH, _LINKS = 211, 212  # the `round` words of these draws
_SOURCES_AT_ONCE = 200  # 17 MB of distances at the paper's size


class Links(NamedTuple):
    """Links between networks, one row each: `upper` is a provider of `lower`, or both are transit networks.

    Networks are numbered transit first, then transit-and-stub, then stub.
    """

    providers: int  # networks below this number carry traffic for others
    lower: NDArray[np.int32]
    upper: NDArray[np.int32]
    one_way_ms: NDArray[np.float64]


def grow(seed: int, *, transit: int, transit_stub: int, stubs: int, links_per_network: int) -> Links:
    """A graph of so many networks of each kind, every link with its latency.

    Each network but the transit ones has `links_per_network` providers, fewer where there are fewer.
    """
    lower, upper = _attach(seed, transit, transit + transit_stub, transit + transit_stub + stubs, links_per_network)
    return Links(transit + transit_stub, lower, upper, link_latencies(seed, len(lower)))


def link_latencies(seed: int, count: int) -> NDArray[np.float64]:
    """One-way milliseconds of so many links: 10 % up to 4, the next 30 % up to 30, the other 60 % up to 115."""
    return np.interp(units(seed, _LINKS, count), LINK_SHARES, LINK_MS)


def units(seed: int, purpose: int, count: int) -> NDArray[np.float64]:
    """So many random numbers in [0, 1); `purpose` is the `round` word of their draws."""
    return (priorities(seed, purpose, count) >> np.uint64(11)).astype(np.float64) * 2.0**-53


def one_way_between(links: Links, stubs: NDArray[np.int64]) -> NDArray[np.float64]:
    """One-way milliseconds between these stub networks, [from, to], along the routes of least latency; 0 to itself.

    No stub carries traffic of others. Symmetric to the last bit.
    """
    core = links.lower < links.providers
    number = np.full(max(int(links.lower.max()), int(stubs.max())) + 1, -1)
    number[stubs] = np.arange(len(stubs))
    mine = np.flatnonzero(~core & (number[links.lower] >= 0))
    by_stub = np.argsort(number[links.lower[mine]], kind="stable")
    last = mine[by_stub].reshape(len(stubs), -1)  # all stubs have equally many links
    start = links.providers + np.repeat(np.arange(len(stubs)), last.shape[1])
    ends = np.concatenate([links.lower[core], links.upper[core], start])
    others = np.concatenate([links.upper[core], links.lower[core], links.upper[last.ravel()]])
    weights = np.concatenate([links.one_way_ms[core], links.one_way_ms[core], links.one_way_ms[last.ravel()]])
    size = links.providers + len(stubs)
    graph = csr_matrix((weights, (ends, others)), shape=(size, size))  # nothing leads into a stub
    found = np.empty((len(stubs), len(stubs)))
    for first in range(0, len(stubs), _SOURCES_AT_ONCE):
        sources = np.arange(first, min(first + _SOURCES_AT_ONCE, len(stubs)))
        reached = dijkstra(graph, indices=links.providers + sources)
        found[sources] = (reached[:, links.upper[last]] + links.one_way_ms[last]).min(axis=2)
    np.fill_diagonal(found, 0.0)
    return np.minimum(found, found.T)  # equal but for the order in which a route's latencies were added


@njit
def _attach(
    seed: int, transit: int, providers: int, networks: int, links_per_network: int
) -> tuple[NDArray[np.int32], NDArray[np.int32]]:
    """Both ends of all links. A provider is drawn from the list of all ends: with probability ∝ its links so far."""
    mesh = transit * (transit - 1) // 2
    most = mesh + (networks - transit) * links_per_network
    lower, upper = np.empty(most, np.int32), np.empty(most, np.int32)
    ends = np.empty(transit + 2 * most, np.int32)
    count = 0
    for a in range(transit):
        for b in range(a):
            lower[count], upper[count] = a, b
            ends[2 * count], ends[2 * count + 1] = a, b
            count += 1
    held = 2 * count
    if transit == 1:
        ends[0] = 0
        held = 1
    for network in range(transit, networks):
        wanted = min(links_per_network, network, providers)
        state, salt, first = stream(seed, _ATTACH, network), 0, count
        while count - first < wanted:
            provider = ends[below(absorb(state, salt), held)]
            salt += 1
            if not np.any(upper[first:count] == provider):
                lower[count], upper[count] = network, provider
                count += 1
        for link in range(first, count):
            ends[held] = upper[link]
            held += 1
            if network < providers:
                ends[held] = network
                held += 1
    return lower[:count], upper[:count]
