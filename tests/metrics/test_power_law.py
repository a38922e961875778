import warnings

import numpy as np
import powerlaw
import pytest

from grapevine.metrics.distributions import Histogram
from grapevine.metrics.power_law import fit_power_law


@pytest.mark.parametrize("exponent", [1.68, 2.0, 2.5, 3.2])
def test_a_known_exponent_is_found(exponent: float) -> None:
    data = np.random.default_rng(7).zipf(exponent, 20_000)
    fit = fit_power_law(Histogram.of(data[data < 10**9]), tail_start=1)
    assert fit is not None
    assert abs(fit.exponent - exponent) < 4 * fit.error
    assert fit.distance < 0.02


@pytest.mark.parametrize("seed", [1, 2, 3])
def test_the_fit_agrees_with_the_powerlaw_package(seed: int) -> None:
    """A power law above 10 with a blunt head: same exponent for the same tail, and a tail at least as good."""
    random = np.random.default_rng(seed)
    tail = random.zipf(2.4, 60_000)
    data = np.concatenate([random.integers(1, 10, 3_000), tail[tail >= 10][:3_000]])
    ours = fit_power_law(Histogram.of(data))
    assert ours is not None
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        same_tail = powerlaw.Fit(data, discrete=True, verbose=False, xmin=ours.tail_start)
        free = powerlaw.Fit(data, discrete=True, verbose=False)
    assert ours.exponent == pytest.approx(same_tail.power_law.alpha, abs=0.005)
    assert ours.distance == pytest.approx(same_tail.power_law.D, abs=0.002)
    assert ours.error == pytest.approx(same_tail.power_law.standard_err, rel=0.1)
    assert ours.distance <= free.power_law.D + 0.002


def test_what_is_no_power_law_has_no_exponent() -> None:
    assert fit_power_law(Histogram.of([50] * 5_000)) is None
    assert fit_power_law(Histogram.of(np.random.default_rng(1).binomial(5_000, 0.01, 5_000))) is None
    assert fit_power_law(Histogram.of([0, 0])) is None


def test_a_small_sample_keeps_its_only_tail() -> None:
    fit = fit_power_law(Histogram(np.array([1, 2, 3, 4]), np.array([900, 30, 10, 5])))
    assert fit is not None
    assert fit.tail_start == 1
