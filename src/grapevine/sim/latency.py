"""How long a message takes: nodes sit at sites, and every two sites have a latency, which may change with time.

    delay = make_latency(LatencyConfig(), nodes=5_001, servers=18, seed=1)
    engine = Events(delay)                           # delay(now, a, b): seconds, one way
    delay.usual_s(a, b)                              # the same, as it usually is

Sites are those of a recorded matrix, stub networks of a generated internet (Rappel §6.1.1), points in a Euclidean
space, or all the same. Bandwidth is not modelled, as in the paper.
"""

from __future__ import annotations

import math
import warnings
from array import array
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from grapevine.kernels.rng import priorities
from grapevine.model.config import MAX_COUNT, Config, parameter
from grapevine.model.errors import UsageError
from grapevine.model.workload import Latency
from grapevine.sim import as_links

KINDS = "as-links", "recorded", "coordinates", "constant"
SERVER_SITES = "random", "farthest"
_SITES, _STUBS, _POINTS, _SERVERS = 213, 214, 215, 216  # the `round` words of these draws

Matrix = NDArray[np.float64]  # [site, site], or with the slices before


@dataclass(frozen=True, slots=True, kw_only=True)
class LatencyConfig(Config):
    """Where latencies come from. A parameter whose meaning begins with a kind is used by that kind alone."""

    latency: str = parameter(
        "as-links",
        "recorded: the matrix of a trace; as-links: a generated internet; coordinates: a Euclidean space; constant",
        source="Rappel §6.1.1",
        choices=KINDS,
    )
    slice_s: float = parameter(
        3_600.0,
        "seconds that a recorded slice lasts; after the last comes the first",
        source="ours: four slices for the 4 hours of Rappel §6.1.1",
        low=0.001,
    )
    local_rtt_ms: float = parameter(
        1.0,
        "round trip between two nodes at one site, ms",
        source="ours: a LAN as in Rappel §3.2",
        low=0,
    )
    most_sites: int = parameter(
        2_000,
        "sites of a generated internet or space, at most; more nodes share them",
        source="ours: 4 bytes × sites² × slices of memory",
        low=1,
        high=20_000,
    )
    stub_networks: int = parameter(
        20_062, "as-links: networks that hosts sit in", source="Rappel §6.1.1", low=1, high=MAX_COUNT
    )
    transit_networks: int = parameter(
        175, "as-links: networks that only carry traffic", source="Rappel §6.1.1", low=1, high=2_000
    )
    transit_stub_networks: int = parameter(
        8_279, "as-links: networks that are both", source="Rappel §6.1.1", low=0, high=MAX_COUNT
    )
    links_per_network: int = parameter(
        2, "as-links: providers of a network", source="ours: gives PlanetLab's median", low=1, high=100
    )
    dimensions: int = parameter(5, "coordinates: dimensions", source="ours", low=1, high=100)
    median_rtt_ms: float = parameter(
        134.0, "coordinates: median round trip between sites, ms", source="ours: PlanetLab's", low=0.001
    )
    constant_rtt_ms: float = parameter(100.0, "constant: round trip, ms", source="ours", low=0)
    server_sites: str = parameter(
        "random",
        "where servers, such as landmarks, sit: at random sites, or each at the one farthest from those before",
        source="ours: Rappel §6.1.4 says geographically diverse; the farthest sites are the badly connected ones",
        choices=SERVER_SITES,
    )


class SiteLatency:
    """The one-way delay between any two nodes, at any time.

    It is asked once a message, so rows are arrays of 32-bit floats: half the cache misses of doubles, and no object an
    entry. The slice is looked up only when the time leaves the current one.
    """

    __slots__ = ("_begin", "_end", "_rows", "_slice_s", "_slices", "_usual", "sites")

    def __init__(self, sites: Sequence[int], rtt_ms: Matrix, slice_s: float = math.inf) -> None:
        """`sites` has the site of every node; `rtt_ms` is [slice, site, site]. Slices of `slice_s` follow each other,
        and after the last comes the first."""
        self.sites = list(sites)
        self._slices = [_rows(matrix) for matrix in rtt_ms]
        self._usual = self._slices[0] if len(rtt_ms) == 1 else _rows(np.median(rtt_ms, axis=0))
        self._rows = self._slices[0]
        self._slice_s = slice_s
        self._begin, self._end = (-math.inf, math.inf) if len(rtt_ms) == 1 else (0.0, slice_s)

    def __call__(self, now: float, a: int, b: int) -> float:
        """Seconds that a message takes from a to b when it leaves now."""
        if not self._begin <= now < self._end:
            self._enter_slice(now)
        sites = self.sites
        return self._rows[sites[a]][sites[b]]

    def usual_s(self, a: int, b: int) -> float:
        """Seconds that a message from a to b usually takes: the median over the slices."""
        sites = self.sites
        return self._usual[sites[a]][sites[b]]

    def _enter_slice(self, now: float) -> None:
        """Use the slice of this time from now on; time may also have gone back."""
        index = int(now // self._slice_s)
        self._begin, self._end = index * self._slice_s, (index + 1) * self._slice_s
        self._rows = self._slices[index % len(self._slices)]


def _rows(rtt_ms: Matrix) -> list[array[float]]:
    """One-way seconds, a row per site."""
    return [array("f", row.tobytes()) for row in np.asarray(rtt_ms / 2_000, np.float32)]


def make_latency(
    config: LatencyConfig, *, nodes: int, servers: int = 0, seed: int = 1, recorded: Latency | None = None
) -> SiteLatency:
    """Latencies between nodes 0 … nodes-1 and the servers that are numbered after them.

    `recorded` is needed for latency=recorded; as-links takes its fluctuation from it, if it is given. Nodes are dealt
    out to sites in random order, so that none has two before all have one; the paper's random choice would leave some
    of few sites empty. Where servers sit (`server_sites`) does not depend on the nodes, as long as the sites are the
    same.
    """
    count = max(1, min(nodes + servers, config.most_sites))
    if config.latency == "recorded":
        if recorded is None:
            raise UsageError(
                "latency=recorded: no recorded latencies; ingest a matrix (grapevine workload ingest latency-matrix "
                "FILE… --out DIR) and pass it with --latency-from DIR"
            )
        rtt_ms = _measured(recorded.rtt_ms)
    elif config.latency == "as-links":
        rtt_ms = _internet(config, count, seed)[None]
        if recorded is not None and len(recorded.rtt_ms) > 1:
            rtt_ms = fluctuating(rtt_ms[0], _measured(recorded.rtt_ms))
    elif config.latency == "coordinates":
        rtt_ms = _space(config, count, seed)[None]
    else:
        return SiteLatency([0] * (nodes + servers), np.full((1, 1, 1), config.constant_rtt_ms))
    count = rtt_ms.shape[1]
    rtt_ms[:, np.arange(count), np.arange(count)] = config.local_rtt_ms
    order = np.argsort(priorities(seed, _SITES, count), kind="stable")
    sites = order[np.arange(nodes) % count].tolist()
    if config.server_sites == "random":
        order = np.argsort(priorities(seed, _SERVERS, count), kind="stable")
        sites += order[np.arange(servers) % count].tolist()
    else:
        sites += farthest(np.median(rtt_ms, axis=0), servers)
    return SiteLatency(sites, rtt_ms, config.slice_s)


def _internet(config: LatencyConfig, count: int, seed: int) -> Matrix:
    """Round trips between random stub networks of a generated internet."""
    links = as_links.grow(
        seed,
        transit=config.transit_networks,
        transit_stub=config.transit_stub_networks,
        stubs=config.stub_networks,
        links_per_network=config.links_per_network,
    )
    stubs = np.argsort(priorities(seed, _STUBS, config.stub_networks), kind="stable")[:count]
    return 2 * as_links.one_way_between(links, links.providers + stubs)


def _space(config: LatencyConfig, count: int, seed: int) -> Matrix:
    """Round trips in proportion to the distances of random points in a cube."""
    from scipy.spatial.distance import cdist  # here, because it takes 0.3 s to import

    points = as_links.units(seed, _POINTS, count * config.dimensions).reshape(count, -1)
    apart = cdist(points, points)
    return apart * (config.median_rtt_ms / _median_of_others(apart))


def _median_of_others(matrix: Matrix) -> float:
    """The median over pairs of different sites; 1 when there is one site alone."""
    pairs = matrix[~np.eye(len(matrix), dtype=bool)]
    return float(np.median(pairs)) if len(pairs) else 1.0


def _measured(rtt_ms: NDArray[np.float32]) -> Matrix:
    """The recorded slices without gaps.

    What was not measured is as the way back; or as the pair is in its other slices; or as the source's median.
    """
    whole = np.array(rtt_ms, np.float64)
    whole[:, np.arange(whole.shape[1]), np.arange(whole.shape[1])] = np.nan  # would make the source's median smaller
    whole = _filled(whole, whole.transpose(0, 2, 1))
    whole = _filled(whole, _median(whole, 0)[None])
    whole = _filled(whole, _median(whole, 2)[:, :, None])
    return np.nan_to_num(_filled(whole, _median(whole.ravel(), 0)))


def _filled(whole: Matrix, instead: Matrix) -> Matrix:
    return np.where(np.isnan(whole), instead, whole)


def _median(values: Matrix, axis: int) -> Matrix:
    """The median of what is there; NaN of nothing."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", RuntimeWarning)
        return np.asarray(np.nanmedian(values, axis=axis))


def fluctuating(usual: Matrix, recorded: Matrix) -> Matrix:
    """Slices for pairs of sites that have a usual latency alone: in the ratios of slice to median of the recorded pair
    whose median is nearest (Rappel §6.1.1)."""
    pairs = recorded[:, ~np.eye(recorded.shape[1], dtype=bool)]
    medians = np.median(pairs, axis=0)
    order = np.argsort(medians, kind="stable")
    order = order[medians[order] > 0]
    if not len(order):
        return usual[None]
    medians, pairs = medians[order], pairs[:, order]
    first, second = np.triu_indices(len(usual), 1)
    wanted = usual[first, second]
    position = np.searchsorted(medians, wanted)
    below, above = np.maximum(position - 1, 0), np.minimum(position, len(medians) - 1)
    nearest = np.where(wanted - medians[below] <= medians[above] - wanted, below, above)
    slices = np.repeat(usual[None], len(recorded), axis=0)
    for matrix, values in zip(slices, pairs, strict=True):
        matrix[first, second] = matrix[second, first] = wanted * (values / medians)[nearest]
    return slices


def farthest(usual: Matrix, count: int) -> list[int]:
    """Sites for so many servers: the one with the smallest median latency, then always the one that is farthest from
    those before (Gonzalez' rule for k centres; the lower number of two). When every site has one, again from the first.

    These are outliers: on the generated internet they are twice as far from the others as any random ones, and
    coordinates that are fitted to them tell little of the distances between ordinary sites (docs/papers.md#latency).
    """
    if not count:
        return []
    apart = usual + usual.T
    np.fill_diagonal(apart, 0.0)
    others = np.sort(apart, axis=1)[:, 1:]
    chosen = [int(np.argmin(np.median(others, axis=1))) if len(apart) > 1 else 0]
    nearest = apart[chosen[0]].copy()
    while len(chosen) < min(count, len(apart)):
        nearest[chosen] = -1.0
        chosen.append(int(np.argmax(nearest)))
        nearest = np.minimum(nearest, apart[chosen[-1]])
    return [chosen[i % len(chosen)] for i in range(count)]
