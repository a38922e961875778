"""Power-law fit of a discrete tail by maximum likelihood (Clauset, Shalizi & Newman, SIAM Review 2009, §3).

For each candidate start of the tail the exponent that maximises the exact discrete likelihood (Hurwitz zeta) is
found; the start with the smallest Kolmogorov–Smirnov distance between tail and fit is kept. No continuous
approximation, no regression on a log–log plot, which Clauset et al. show to be biased.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from scipy.special import zeta

from grapevine.metrics.distributions import Histogram

SMALLEST_TAIL = 50  # observations; below this the estimate is mostly noise (Clauset et al. §3.2)
LOWEST, HIGHEST = 1.01, 6.0  # exponents searched; steeper is no power law that anybody speaks of
CANDIDATES = 200  # tail starts tried at most, spread evenly over the ranks of the distinct values


class PowerLaw(NamedTuple):
    """A fitted tail: P(x) ∝ x^-exponent for x ≥ tail_start."""

    exponent: float
    error: float
    tail_start: int
    tail_share: float
    distance: float


def fit_power_law(histogram: Histogram, tail_start: int | None = None) -> PowerLaw | None:
    """The best-fitting tail, or the tail from `tail_start`; None where none fits or too little is left."""
    keep = histogram.values >= 1
    data = Histogram(histogram.values[keep], histogram.counts[keep])
    if tail_start is not None:
        return _inside(_fit_from(data, int(np.searchsorted(data.values, tail_start)), histogram.total))
    large_enough = np.cumsum(data.counts[::-1])[::-1] >= SMALLEST_TAIL
    starts = np.flatnonzero(large_enough)
    if len(starts) > CANDIDATES:
        starts = starts[np.linspace(0, len(starts) - 1, CANDIDATES).astype(np.int64)]
    fits = [fit for start in starts if (fit := _fit_from(data, int(start), histogram.total)) is not None]
    return _inside(min(fits, key=lambda fit: fit.distance, default=None))


def _inside(fit: PowerLaw | None) -> PowerLaw | None:
    """None when the likelihood grows to the edge of the search: this is no power law."""
    return fit if fit and LOWEST + 0.01 < fit.exponent < HIGHEST - 0.01 else None


def _fit_from(data: Histogram, start: int, population: int) -> PowerLaw | None:
    from scipy.optimize import minimize_scalar  # here, because it takes 0.3 s to import

    values, counts = data.values[start:].astype(np.float64), data.counts[start:]
    if len(values) < 2:
        return None
    size, smallest = counts.sum(), values[0]
    log_sum = float(np.dot(counts, np.log(values)))

    def negative_log_likelihood(exponent: float) -> float:
        return float(size * np.log(zeta(exponent, smallest)) + exponent * log_sum)

    found = minimize_scalar(
        negative_log_likelihood, bounds=(LOWEST, HIGHEST), method="bounded", options={"xatol": 1e-6}
    )
    exponent = float(found.x)
    fitted = 1.0 - zeta(exponent, values + 1.0) / zeta(exponent, smallest)
    distance = float(np.max(np.abs(np.cumsum(counts) / size - fitted)))
    return PowerLaw(
        exponent, _standard_error(exponent, smallest, int(size)), int(smallest), float(size / population), distance
    )


def _standard_error(exponent: float, smallest: float, size: int) -> float:
    """From the curvature of the likelihood: 1/√(n · d²/dα² ln ζ(α, x_min)), by central differences."""
    step = 1e-4
    log_zeta = np.log(zeta(np.array([exponent - step, exponent, exponent + step]), smallest))
    curvature = float((log_zeta[0] - 2 * log_zeta[1] + log_zeta[2]) / step**2)
    return float(1.0 / np.sqrt(size * curvature)) if curvature > 0 else float("nan")
