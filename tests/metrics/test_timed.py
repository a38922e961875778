"""Quantiles and stretch in memory; tests/pipeline/test_sweep.py has the rest."""

from __future__ import annotations

import numpy as np

from grapevine.metrics.timed import over_distance, quantile


def test_a_quantile_is_that_of_the_known_values() -> None:
    assert quantile(np.array([1.0, np.nan, 3.0]), 0.5) == 2.0
    assert quantile(np.array([np.nan]), 0.5) is None


def test_a_way_is_compared_with_a_distance_that_is_known_and_not_0() -> None:
    way, distance = np.array([3.0, 3.0, np.nan, 3.0]), np.array([2.0, 0.0, 1.0, np.nan])
    assert np.array_equal(over_distance(way, distance), [1.5, np.nan, np.nan, np.nan], equal_nan=True)
