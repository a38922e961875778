"""Rounds that pass over what a node has refused before build the same overlay as rounds that look at everything.

The plain oracle (`tests/systems/test_against_naive`) judges both; here the two are compared at sizes that it cannot do,
where most of a round is passed over.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

from grapevine.blocks.meetings import NEVER, NO_MEETINGS, BeforeAndAfter
from grapevine.blocks.network import Network
from grapevine.sim.churn import Schedule, flash_crowd, mass_failure
from grapevine.sim.rounds import Rounds
from grapevine.sim.simulate import make_config
from grapevine.synthetic import generate


class Forgetful(Network):
    """A network in which nobody remembers a meeting."""

    def _next_meetings(self, last: BeforeAndAfter) -> BeforeAndAfter:
        return NO_MEETINGS


def pair_of(system: str, model: str, **options: object) -> tuple[Rounds, Rounds]:
    made = generate(model, nodes=900, topics=200, seed=4, **options)  # type: ignore[arg-type]
    config = make_config(system, {})
    return Rounds(system, made, config, seed=9), Rounds(system, made, config, seed=9, network=Forgetful)


def assert_equal(one: Rounds, other: Rounds) -> None:
    for name in ("links", "heard", "cache", "cache_heard", "backups"):
        assert np.array_equal(getattr(one.network.rows, name), getattr(other.network.rows, name)), (one.now, name)


CASES = [
    ("vitis", "vitis-high", {"buckets": 4}),
    ("vitis", "vitis-random", {}),
    ("vitis", "vitis-high", {"buckets": 4, "rate_exponent": 1.0}),
    ("rvr", "vitis-random", {}),
]


@pytest.mark.parametrize(("system", "model", "options"), CASES, ids=["high", "random", "unequal rates", "rvr"])
def test_what_is_passed_over_would_have_been_refused(system: str, model: str, options: dict[str, object]) -> None:
    one, other = pair_of(system, model, **options)
    for _ in range(40):
        one.step()
        other.step()
        assert_equal(one, other)
    meetings = one.network._meetings
    assert meetings is not None and (meetings[0].met != NEVER).mean() > 0.3, "or nothing was passed over"


@pytest.mark.parametrize("schedule", [mass_failure, flash_crowd], ids=["crash", "crowd"])
def test_whoever_comes_or_goes_is_seen(schedule: Callable[..., Schedule]) -> None:
    made, config = generate("vitis-high", nodes=600, topics=200, buckets=4, seed=5), make_config("vitis", {})
    when = schedule(600, round=12, share=0.2)
    one = Rounds("vitis", made, config, seed=3, schedule=when)
    other = Rounds("vitis", made, config, seed=3, schedule=when, network=Forgetful)
    for _ in range(45):
        one.step()
        other.step()
        assert_equal(one, other)


def test_new_interests_are_seen_by_all() -> None:
    one, other = pair_of("vitis", "vitis-high", buckets=4)
    for now in range(30):
        for each in (one, other):
            if now == 15:
                for node in range(0, 900, 7):
                    each.subscribe(node, node % 200)
                    each.unsubscribe(node, int(each.workload.topics_of(node)[0]))
            each.step()
        assert_equal(one, other)


def test_links_that_others_wrote_are_looked_at_again() -> None:
    one, other = pair_of("vitis", "vitis-high", buckets=4)
    for now in range(25):
        for each in (one, other):
            if now == 15:
                each.network.say_goodbye(np.arange(0, 900, 3, dtype=np.int32))
            each.step()
        assert_equal(one, other)


def test_threads_and_their_chunks_do_not_matter() -> None:
    made, config = generate("vitis-high", nodes=900, topics=200, buckets=4, seed=4), make_config("vitis", {})
    one, other = Rounds("vitis", made, config, seed=9), Rounds("vitis", made, config, seed=9, threads=3)
    for _ in range(25):
        one.step()
        other.step()
    assert_equal(one, other)


def test_a_mistake_on_any_thread_is_told() -> None:
    made = generate("vitis-high", nodes=900, topics=200, buckets=4, seed=4)
    engine = Rounds("vitis", made, make_config("vitis", {}), threads=2)

    def fail(first: int, last: int) -> None:
        if last == 900:
            raise ValueError("the last range")

    with pytest.raises(ValueError, match="the last range"):
        engine.network.in_chunks(fail)
