"""Vivaldi against its figure written down plainly, and against points whose distances are known."""

from __future__ import annotations

import itertools
from random import Random

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray
from scipy.optimize import least_squares

from grapevine.kernels.coords import pull, settle
from grapevine.sim.events import Events
from grapevine.systems.rappel.config import RappelConfig
from grapevine.systems.rappel.position import LANDMARK_ROUNDS, Landmark

Points = NDArray[np.float64]


def plain_pull(
    position: list[float], error: float, other: list[float], other_error: float, measured: float
) -> tuple[list[float], float]:
    """Vivaldi Fig. 4: w, e_s, the error's moving average, δ, and the step along the unit vector."""
    difference = [a - b for a, b in zip(position, other, strict=True)]
    distance = sum(part**2 for part in difference) ** 0.5
    weight = error / (error + other_error)
    sample = abs(distance - measured) / measured
    error = sample * 0.25 * weight + error * (1 - 0.25 * weight)
    step = 0.25 * weight * (measured - distance)
    return [a + step * part / distance for a, part in zip(position, difference, strict=True)], error


coordinates = st.lists(st.floats(-500, 500), min_size=3, max_size=3)
errors = st.floats(0.01, 2)


@given(coordinates, errors, coordinates, errors, st.floats(1, 500))
def test_one_measurement_moves_a_node_as_in_the_paper(
    position: list[float], error: float, other: list[float], other_error: float, measured: float
) -> None:
    moved = np.array(position)
    if np.linalg.norm(moved - np.array(other)) < 0.001:
        return  # the direction is a matter of rounding
    expected, expected_error = plain_pull(position, error, other, other_error, measured)
    assert pull(moved, error, np.array(other), other_error, measured) == pytest.approx(expected_error)
    assert moved == pytest.approx(expected, abs=1e-6)


def test_two_nodes_at_one_place_get_apart() -> None:
    position = np.zeros(3)
    pull(position, 1.0, np.zeros(3), 1.0, 10.0)
    assert np.linalg.norm(position) == pytest.approx(0.25 * 0.5 * 10.0)


def scattered(count: int, dimensions: int, seed: int) -> Points:
    return np.random.default_rng(seed).uniform(0, 200, (count, dimensions))


@pytest.mark.parametrize("seed", range(5))
@pytest.mark.parametrize("dimensions", [2, 3])
def test_a_newcomer_finds_its_place_among_nodes_that_are_sure_of_theirs(dimensions: int, seed: int) -> None:
    places, here = scattered(18, dimensions, seed), scattered(1, dimensions, 100 + seed)[0]
    measured = np.linalg.norm(places - here, axis=1)
    position = np.random.default_rng(seed).uniform(-1, 1, dimensions)
    error = settle(position, places, np.full(18, 0.001), measured, 200)
    assert position == pytest.approx(here, abs=1.0)
    assert error < 0.01


@pytest.mark.parametrize("noise", [0.05, 0.2])
def test_a_newcomers_place_is_nearly_as_good_as_the_best_one(noise: float) -> None:
    """Where distances fit no place at all; against least squares of the relative errors (scipy)."""
    found, best = [], []
    for seed in range(40):
        random, places = np.random.default_rng(seed), scattered(18, 3, 100 + seed)
        measured = np.linalg.norm(places - random.uniform(0, 200, 3), axis=1) * random.lognormal(0, noise, 18)

        def errors(here: Points, places: Points = places, measured: Points = measured) -> Points:
            return np.asarray((np.linalg.norm(places - here, axis=1) - measured) / measured)

        found.append(settle(random.uniform(-1, 1, 3), places, np.full(18, noise), measured, 200))
        best.append(abs(errors(least_squares(errors, places.mean(axis=0)).x)).mean())
    assert np.mean(found) < 1.25 * np.mean(best)  # springs weigh errors in ms, not relative ones


@pytest.mark.parametrize("noise", [0.05, 0.2, 0.5])
def test_a_newcomer_rests_where_the_springs_energy_is_least(noise: float) -> None:
    """Against least squares (scipy) from the same start; landmarks that are equally sure weigh the same."""
    for seed in range(20):
        random, places = np.random.default_rng(seed), scattered(18, 3, 100 + seed)
        measured = np.linalg.norm(places - random.uniform(0, 200, 3), axis=1) * random.lognormal(0, noise, 18)
        start = random.uniform(-1, 1, 3)

        def stretched(here: Points, places: Points = places, measured: Points = measured) -> Points:
            return np.asarray(np.linalg.norm(places - here, axis=1) - measured)

        position = start.copy()
        settle(position, places, np.full(18, noise), measured, 1_000)
        best = least_squares(stretched, start, xtol=1e-12, ftol=1e-12, gtol=1e-12).x
        assert (stretched(position) ** 2).sum() <= 1.001 * (stretched(best) ** 2).sum()


@pytest.mark.parametrize("seed", range(5))
def test_heights_are_found_beside_points(seed: int) -> None:
    """Vivaldi §5.4: distances between hosts behind links of their own, which no points alone can have."""
    random = np.random.default_rng(seed)
    places = np.hstack([scattered(18, 2, seed), random.uniform(5, 60, (18, 1))])
    here = np.array([*scattered(1, 2, 100 + seed)[0], 40.0])
    measured = np.linalg.norm(places[:, :2] - here[:2], axis=1) + places[:, 2] + here[2]
    position = np.array([*random.uniform(-1, 1, 2), 0.0])
    error = settle(position, places, np.full(18, 0.1), measured, 5_000, True)
    assert position == pytest.approx(here, abs=1.0)
    assert error < 0.01


def test_a_spring_moves_points_and_heights_in_their_shares_of_the_distance() -> None:
    """Vivaldi §5.4: 30 ms between the points, 20 of heights, 60 measured: a quarter of half of what is missing."""
    position = np.array([30.0, 0.0, 15.0])
    pull(position, 1.0, np.array([0.0, 0.0, 5.0]), 1.0, 60.0, True)
    assert position == pytest.approx([30 + 1.25 * 0.6, 0, 15 + 1.25 * 0.4])
    pull(position, 1.0, np.array([0.0, 0.0, 5.0]), 1.0, 1e-9, True)
    assert position[2] >= 0


@pytest.mark.parametrize("seed", range(3))
def test_distances_of_points_in_space_are_recovered(seed: int) -> None:
    """Every node measures its distances to some others, again and again."""
    random, points = np.random.default_rng(seed), scattered(30, 3, seed)
    positions, errors = random.uniform(-1, 1, (30, 3)), np.ones(30)
    for _ in range(300):
        for i in range(30):
            j = (i + random.integers(1, 30)) % 30
            measured = float(np.linalg.norm(points[i] - points[j]))
            errors[i] = pull(positions[i], errors[i], positions[j].copy(), errors[j], measured)
    assert np.median(relative_errors(positions, points)) < 0.03


@pytest.mark.parametrize("seed", range(3))
def test_landmarks_agree_about_their_distances(seed: int) -> None:
    """Rappel §6.1.4: 18 of them."""
    config, points = RappelConfig(), scattered(18, 3, seed)
    engine = Events(lambda now, a, b: float(np.linalg.norm(points[a] - points[b])) / 1_000)
    landmarks = [Landmark(node, config, range(18), Random(f"{seed} {node}")) for node in range(18)]
    for node, landmark in enumerate(landmarks):
        engine.start(node, landmark)
    engine.run(until=LANDMARK_ROUNDS + 1.0)
    found = np.array([landmark.position for landmark in landmarks])
    assert np.median(relative_errors(found, points)) < 0.01
    engine.run(until=600.0)
    assert (found == np.array([landmark.position for landmark in landmarks])).all()  # they stay


def relative_errors(positions: Points, points: Points) -> Points:
    pairs = list(itertools.combinations(range(len(points)), 2))
    measured = np.array([np.linalg.norm(points[a] - points[b]) for a, b in pairs])
    predicted = np.array([np.linalg.norm(positions[a] - positions[b]) for a, b in pairs])
    return np.asarray(abs(predicted - measured) / measured)
