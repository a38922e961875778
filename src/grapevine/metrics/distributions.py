"""Statistics of a whole-number distribution given as a histogram: ascending values and how often each occurs.

A histogram of degrees has a few thousand rows whatever the size of the trace, so Spark counts and this computes.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray


class Histogram(NamedTuple):
    """Ascending distinct values, and the count (> 0) of each."""

    values: NDArray[np.int64]
    counts: NDArray[np.int64]

    @classmethod
    def of(cls, data: ArrayLike) -> Histogram:
        """The histogram of raw data."""
        values, counts = np.unique(np.asarray(data, np.int64), return_counts=True)
        return cls(values, counts.astype(np.int64))

    @property
    def total(self) -> int:
        """The size of the population."""
        return int(self.counts.sum())


class Moments(NamedTuple):
    """The rows of Vitis Fig. 9."""

    mean: float
    variance: float
    standard_deviation: float
    maximum: int


def moments(histogram: Histogram) -> Moments:
    """Mean, population variance, standard deviation and maximum."""
    mean = float(np.average(histogram.values, weights=histogram.counts))
    variance = float(np.average((histogram.values - mean) ** 2, weights=histogram.counts))
    return Moments(mean, variance, variance**0.5, int(histogram.values[-1]))


def ccdf(histogram: Histogram) -> NDArray[np.float64]:
    """For each value, the share of the population that has at least it."""
    return np.asarray(np.cumsum(histogram.counts[::-1])[::-1] / histogram.total, np.float64)


def gini(histogram: Histogram) -> float:
    """Inequality: 0 when all are equal, towards 1 when one has everything."""
    mass = histogram.values * histogram.counts
    if mass.sum() == 0:
        return 0.0
    lorenz = np.concatenate([[0.0], np.cumsum(mass) / mass.sum()])
    population = np.concatenate([[0.0], np.cumsum(histogram.counts) / histogram.total])
    return float(1.0 - np.sum((lorenz[1:] + lorenz[:-1]) * np.diff(population)))


def ks_distance(a: Histogram, b: Histogram) -> float:
    """Two-sample Kolmogorov–Smirnov distance: the largest gap between the two distributions."""
    points = np.union1d(a.values, b.values)
    return float(np.max(np.abs(_cdf(a, points) - _cdf(b, points))))


def _cdf(histogram: Histogram, points: NDArray[np.int64]) -> NDArray[np.float64]:
    below = np.concatenate([[0], np.cumsum(histogram.counts)])
    return np.asarray(below[np.searchsorted(histogram.values, points, side="right")] / histogram.total, np.float64)
