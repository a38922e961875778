import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import ks_2samp

from grapevine.metrics.distributions import Histogram, ccdf, gini, ks_distance, moments
from tests import naive

data = st.lists(st.integers(0, 30), min_size=1, max_size=60)


@given(data)
def test_moments_are_those_of_numpy(values: list[int]) -> None:
    found = moments(Histogram.of(values))
    assert found.mean == pytest.approx(np.mean(values))
    assert found.variance == pytest.approx(np.var(values))
    assert found.standard_deviation == pytest.approx(np.std(values))
    assert found.maximum == max(values)


@given(data)
def test_ccdf_counts_who_has_at_least_as_much(values: list[int]) -> None:
    histogram = Histogram.of(values)
    expected = [sum(v >= x for v in values) / len(values) for x in histogram.values]
    assert ccdf(histogram).tolist() == pytest.approx(expected)


@given(data)
def test_gini_is_half_the_relative_mean_difference(values: list[int]) -> None:
    assert gini(Histogram.of(values)) == pytest.approx(naive.gini(values), abs=1e-12)


@pytest.mark.filterwarnings("ignore::RuntimeWarning")  # scipy p-values of tiny samples
@given(data, data)
def test_ks_distance_is_that_of_scipy(a: list[int], b: list[int]) -> None:
    assert ks_distance(Histogram.of(a), Histogram.of(b)) == pytest.approx(ks_2samp(a, b, method="asymp").statistic)


def test_five_nodes_by_hand() -> None:
    histogram = Histogram.of([1, 1, 2, 2, 4])
    assert moments(histogram) == pytest.approx((2.0, 1.2, 1.2**0.5, 4))
    assert ccdf(histogram).tolist() == pytest.approx([1.0, 0.6, 0.2])
    assert gini(histogram) == pytest.approx(0.28)
