"""The claims of Magnet (Girdzijauskas et al. 2010). What is saved are uninterested relays, against the strawman."""

from __future__ import annotations

from grapevine.experiment.claims.base import Evidence, Finding, claim, falls, met_if
from grapevine.metrics.findings import POPULARITY_EXPONENT
from grapevine.metrics.traffic import RELAYS_PER_EVENT

_MODES = ("1 of 10", "2 of 20", "5 of 50"), ("1 of 5", "2 of 10", "5 of 25")  # falling correlation, at two ratios
_RATES = {"equal rates": 0.0, "rates by a power law": 0.75}
_POPULARITY = 0.25, 0.5, 0.75, 1.0, 1.25, 1.5
_SIZES = 5, 10, 20, 40, 80


def saved(evidence: Evidence, experiment: str, workload: str, **point: float) -> float:
    """The share of the strawman's uninterested relays that Magnet does without."""
    magnet, strawman = (
        evidence.value(experiment, RELAYS_PER_EVENT, system, workload, **point) for system in ("magnet", "strawman")
    )
    return 1 - magnet / strawman


def shares(values: list[float]) -> str:
    """Shares of a curve, with slashes between."""
    return "/".join(f"{100 * value:.0f}" for value in values) + " %"


@claim(
    "M1",
    "Fig. 3",
    "multi-modal, 10,000 nodes: never more relays than the strawman; 20 % – 80 % saved as b_p falls",
    "direction",
    "magnet_fig3",
)
def _(evidence: Evidence) -> Finding:
    curves = {
        (rates, names): [saved(evidence, "magnet_fig3", name, rate_exponent=exponent) for name in names]
        for rates, exponent in _RATES.items()
        for names in _MODES
    }
    savings = (f"{rates}, {names[0]} … {names[-1]}: {shares(curve)}" for (rates, names), curve in curves.items())
    least = min(min(curve) for curve in curves.values())
    return met_if(
        all(falls(curve) for curve in curves.values()) and least > 0,
        "saved with b_p = 1/2/5: " + "; ".join(savings),
    )


@claim(
    "M2",
    "Fig. 4",
    "better with larger α; better than the strawman at every subscription size",
    "direction",
    "magnet_fig4",
)
def _(evidence: Evidence) -> Finding:
    popularity = [saved(evidence, "magnet_fig4", "popularity", alpha=alpha) for alpha in _POPULARITY]
    sizes = [
        saved(evidence, "magnet_fig4", "size", subscriptions_per_node=size, rate_exponent=exponent)
        for exponent in _RATES.values()
        for size in _SIZES
    ]
    relays = [
        evidence.value("magnet_fig4", RELAYS_PER_EVENT, "magnet", "popularity", alpha=alpha) for alpha in _POPULARITY
    ]
    return met_if(
        falls(relays) and min(popularity + sizes) > 0,
        f"relays of an event at α = 0.25 … 1.5: {'/'.join(f'{value:.0f}' for value in relays)}, saved "
        f"{shares(popularity)}; saved with 5 … 80 topics a node: {shares(sizes[: len(_SIZES)])} with equal rates, "
        f"{shares(sizes[len(_SIZES) :])} with a power law",
    )


@claim(
    "M3",
    "Fig. 6",
    "spatial: saving grows with t = 8/16/32; almost 80 % with 10,000 nodes, t = 32",
    "≥ 65 %",
    "magnet_fig6",
)
def _(evidence: Evidence) -> Finding:
    curves = {
        nodes: [saved(evidence, "magnet_fig6", "spatial", nodes=nodes, mean_subscriptions=t) for t in (8.0, 16.0, 32.0)]
        for nodes in (1_000, 4_000, 10_000)
    }
    growing = all(falls(curve[::-1]) for curve in curves.values())
    return met_if(
        growing and curves[10_000][-1] >= 0.65,
        "saved: " + "; ".join(f"{shares(curve)} with {nodes:,} nodes" for nodes, curve in curves.items()),
    )


@claim(
    "M4",
    "Fig. 8",
    "hierarchical, 2^14 × 2^14: 20 % – 60 % saved; rises with λ, falls with initFrac and Z",
    "direction",
    "magnet_fig8",
)
def _(evidence: Evidence) -> Finding:
    by_homophily = {
        fraction: [
            saved(evidence, "magnet_fig8", "homophily", homophily=value, initial_fraction=fraction)
            for value in (0.5, 1.0, 2.0)
        ]
        for fraction in (0.1, 0.3, 0.5)
    }
    few, many = (saved(evidence, "magnet_fig8", "size", mean_subscriptions=size) for size in (8.0, 32.0))
    by_size = [few, by_homophily[0.1][-1], many]  # Z = 16 is the point of λ = 2 and initFrac 0.1
    rises = all(falls(curve[::-1]) for curve in by_homophily.values())
    drops = all(falls(list(curve)) for curve in zip(*by_homophily.values(), strict=True))
    return met_if(
        rises and drops and falls(by_size),
        "saved at λ = 0.5/1/2: "
        + "; ".join(f"{shares(curve)} with initFrac {fraction:g}" for fraction, curve in by_homophily.items())
        + f"; with Z = 8/16/32: {shares(by_size)}",
    )


@claim(
    "M5",
    "Fig. 7",
    "hierarchical, Z = 16, initFrac 10 %, α0 = 2, λ = 2: popularity fits a power law with α = 1.68",
    "± 0.25",
    "magnet_fig8",
)
def _(evidence: Evidence) -> Finding:
    exponent = evidence.value(
        "magnet_fig8", POPULARITY_EXPONENT, "magnet", "homophily", homophily=2.0, initial_fraction=0.1
    )
    return met_if(
        abs(exponent - 1.68) <= 0.25,
        f"α = {exponent:.2f}",
        "the reading of α0 was chosen for this match (docs/papers.md#magnet), so it is no independent evidence",
    )


@claim(
    "M6",
    "§4.5",
    "Wikipedia edits, degree 12: the strawman has 77 % more uninterested relays",
    "direction, ≥ 30 %",
    "magnet_wikipedia",
)
def _(evidence: Evidence) -> Finding:
    magnet, strawman = (
        evidence.value("magnet_wikipedia", RELAYS_PER_EVENT, system, "Wikipedia") for system in ("magnet", "strawman")
    )
    return met_if(
        strawman / magnet - 1 >= 0.3,
        f"{100 * (strawman / magnet - 1):.0f} % more ({strawman:.1f} against {magnet:.1f})",
        "weighted by the pages' edits. Our trace is one month of the 1,000 most edited pages with 8,227 users, 18 a "
        "page; the paper's had 5.4 a page",
    )


@claim("M7", "§6", "uncorrelated subscriptions: never worse than the strawman", "≤ 1.05 ×", "magnet_fig3")
def _(evidence: Evidence) -> Finding:
    worst = max(1 - saved(evidence, "magnet_fig3", "uncorrelated", rate_exponent=rate) for rate in _RATES.values())
    return met_if(worst <= 1.05, f"{worst:.3f} times the strawman's relays")
