"""Every model against the section that defines it."""

from __future__ import annotations

import dataclasses
from typing import Any

import networkx as nx
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from grapevine.kernels.subscribe import positions
from grapevine.metrics.distributions import Histogram
from grapevine.metrics.power_law import fit_power_law
from grapevine.model.errors import UsageError
from grapevine.model.workload import Workload
from grapevine.synthetic import MODELS, generate
from grapevine.synthetic.base import ChurnModel, SubscriptionModel, zipf
from grapevine.synthetic.magnet import MagnetSpatial
from grapevine.synthetic.rappel import Outage, OvernetChurn
from grapevine.synthetic.spidercast import SpiderCast, SpiderCastChurn
from grapevine.synthetic.vitis import TwitterLike
from tests import naive

SPLITTABLE = [n for n, m in MODELS.items() if issubclass(m, SubscriptionModel) and not m.whole]
SUBSCRIPTIONS = [n for n, m in MODELS.items() if issubclass(m, SubscriptionModel)]


def topics_per_group(workload: Workload, size: int) -> list[list[int]]:
    """For each node, how many topics it has in each group of `size` consecutive topics that it touches."""
    rows = [np.unique(workload.topics_of(node) // size, return_counts=True)[1] for node in range(workload.node_count)]
    return [row.tolist() for row in rows]


@pytest.mark.parametrize("name", SPLITTABLE)
@given(cut=st.integers(0, 300), seed=st.integers(0, 2**40))
def test_a_nodes_topics_do_not_depend_on_the_range_it_is_made_in(name: str, cut: int, seed: int) -> None:
    model = MODELS[name](nodes=300)
    assert isinstance(model, SubscriptionModel)
    starts, topics = model.subscriptions(seed, 0, 300)
    left, right = model.subscriptions(seed, 0, cut), model.subscriptions(seed, cut, 300)
    assert np.array_equal(topics, np.concatenate([left[1], right[1]]))
    assert np.array_equal(np.diff(starts), np.concatenate([np.diff(left[0]), np.diff(right[0])]))


@pytest.mark.parametrize("name", SUBSCRIPTIONS)
def test_rows_are_distinct_ascending_topics_and_follow_the_seed(name: str) -> None:
    fewer: dict[str, dict[str, int]] = {"magnet-hierarchical": {"topics": 512}, "rappel-feed": {"subscribers": 200}}
    small = {"nodes": 512} | fewer.get(name, {})
    workload, again, other = (generate(name, seed=seed, **small) for seed in (5, 5, 6))
    for node in range(workload.node_count):
        row = workload.topics_of(node)
        assert np.all(np.diff(row) > 0)
        assert len(row) == 0 or 0 <= row[0] <= row[-1] < workload.topic_count
    rows, same, different = (
        [made.topics_of(node).tolist() for node in range(512)] for made in (workload, again, other)
    )
    assert rows == same
    assert rows != different


@pytest.mark.parametrize(
    ("name", "buckets"), [("vitis-random", None), ("vitis-low", [10] * 5), ("vitis-high", [25] * 2)]
)
def test_vitis_patterns_take_their_topics_from_the_right_buckets(name: str, buckets: list[int] | None) -> None:
    """Vitis §IV-A: 50 of 5,000; 10 from each of 5 of 100 buckets; 25 from each of 2. Popularity is uniform in all."""
    workload = generate(name, nodes=5_000)
    assert set(workload.node_topics.sizes()) == {50}
    if buckets:
        assert all(row == buckets for row in topics_per_group(workload, 50))
    popularity = workload.topic_nodes.sizes()
    assert popularity.mean() == 50
    assert popularity.std() < 1.2 * 50**0.5  # as binomial sampling, not wider


def test_twitter_like_users_follow_by_a_power_law_of_the_papers_numbers() -> None:
    """Vitis §IV-E: both degrees by a power law of 1.65, 80 subscriptions in the mean; every user is a topic."""
    law = TwitterLike()
    smallest, largest = law.degrees()
    weights = np.arange(smallest, largest + 1) ** -1.65
    assert (weights * np.arange(smallest, largest + 1)).sum() / weights.sum() == pytest.approx(80, rel=0.01)
    workload = generate("twitter-like")
    assert workload.publishers.tolist() == list(range(10_000))
    sizes, followers = workload.node_topics.sizes(), workload.topic_nodes.sizes()
    assert sizes.mean() == pytest.approx(80, rel=0.1)  # two standard deviations
    assert (sizes.min(), sizes.max() <= largest) == (smallest, True)
    assert abs(followers.max() / largest - 1) < 0.1
    for degrees in (sizes, followers):
        fit = fit_power_law(Histogram.of(degrees))
        assert fit is not None
        assert fit.exponent == pytest.approx(1.65, abs=0.1)
        assert fit.tail_share > 0.5
    assert not any(node in workload.topics_of(node) for node in range(10_000))


def test_twitter_like_users_get_the_followers_that_the_law_gives_them() -> None:
    """Weights in proportion to the wanted followers would flatten the distribution: the few would get far more."""
    law = TwitterLike()
    smallest, largest = law.degrees()
    followers = generate("twitter-like").topic_nodes.sizes()
    degrees = np.arange(smallest, largest + 1)
    upto = np.cumsum(degrees**-1.65) / np.sum(degrees**-1.65)
    for share in (0.25, 0.5, 0.75, 0.9):
        assert np.quantile(followers, share) == pytest.approx(degrees[np.searchsorted(upto, share)], rel=0.2)


def test_spidercast_popularity_follows_rank() -> None:
    """SpiderCast §3.1: with one subscription each, topic i is chosen with probability ∝ i^-α."""
    workload = generate("spidercast", nodes=100_000, exponent=1.0, min_subscriptions=1, max_subscriptions=1)
    expected = 100_000 * zipf(100, 1.0) / zipf(100, 1.0).sum()
    assert np.all(np.abs(workload.topic_nodes.sizes() - expected) < 5 * expected**0.5)


def test_nyse_gives_the_top_tenth_55_percent() -> None:
    law = SpiderCast(popularity="exponential").topic_weights()
    assert law[:10].sum() / law.sum() == pytest.approx(0.55)
    assert np.allclose(law[1:] / law[:-1], law[1] / law[0])


def test_subscription_counts_are_uniform_between_min_and_max() -> None:
    """SpiderCast §3.6: [10 : 30] has mean 20."""
    sizes = generate("spidercast", nodes=20_000, max_subscriptions=30).node_topics.sizes()
    assert (sizes.min(), sizes.max()) == (10, 30)
    assert sizes.mean() == pytest.approx(20, abs=0.2)


def test_omen_sizes_follow_a_power_law_between_10_and_90() -> None:
    sizes = generate("omen", nodes=50_000).node_topics.sizes()
    assert (sizes.min(), sizes.max()) == (10, 90)
    law = np.arange(10, 91) ** -2.0
    expected = 50_000 * law / law.sum()
    assert np.all(np.abs(np.bincount(sizes)[10:] - expected) < 5 * expected**0.5)


def test_magnet_modes_bound_where_topics_come_from() -> None:
    """Magnet §4.2: b_p of b_n categories; popularity in a category falls with rank."""
    workload = generate("magnet-modal", nodes=4_000, modes=50, modes_per_node=5)
    touched = topics_per_group(workload, 20)
    assert all(len(row) <= 5 and sum(row) == 50 for row in touched)
    by_rank = workload.topic_nodes.sizes().reshape(50, 20).sum(axis=0)
    assert np.all(np.diff(by_rank) < 0)


def test_magnet_spatial_subscribes_to_who_is_near() -> None:
    model = MagnetSpatial(nodes=400, mean_subscriptions=8)
    x, y = positions(3, 400)
    starts, topics = model.subscriptions(3, 0, 400)
    for node in range(400):
        assert topics[starts[node] : starts[node + 1]].tolist() == naive.near(
            x.tolist(), y.tolist(), node, model.radius
        )


@pytest.mark.parametrize("wanted", [8, 16, 32])
def test_magnet_spatial_has_the_wanted_mean(wanted: int) -> None:
    """Magnet §4.3: the radius is such that a node has t topics on average, also near the border."""
    mean = generate("magnet-spatial", nodes=10_000, mean_subscriptions=float(wanted)).node_topics.sizes().mean()
    assert mean == pytest.approx(wanted, rel=0.03)


def test_magnet_hierarchy_keeps_the_reading_that_fig_7_decided() -> None:
    """Magnet Fig. 7: exponent 1.68. The reading was chosen by this figure (docs/papers.md), so this guards it only."""
    exponents = []
    for seed in (1, 2):
        workload = generate("magnet-hierarchical", seed=seed)
        assert workload.subscription_count == 2**14 * 16
        assert workload.topic_nodes.sizes().min() > 0  # step a: all topics are populated
        assert workload.node_topics.sizes().min() > 0  # every user has a home topic
        fit = fit_power_law(Histogram.of(workload.topic_nodes.sizes()))
        assert fit is not None
        exponents.append(fit.exponent)
    assert abs(np.mean(exponents) - 1.68) < 0.1


def test_magnet_homophily_keeps_subscriptions_close_in_the_tree() -> None:
    """Magnet §4.4 step b3: with a large λ new topics are siblings, so nodes hold both leaves of a pair."""

    def share_with_sibling(homophily: float) -> float:
        workload = generate("magnet-hierarchical", nodes=1_024, topics=1_024, homophily=homophily)
        rows = [set(workload.topics_of(node).tolist()) for node in range(1_024)]
        return float(np.mean([topic ^ 1 in row for row in rows for topic in row]))

    assert share_with_sibling(2.0) > share_with_sibling(0.5) > share_with_sibling(0.0)


def test_magnet_hierarchy_with_few_initial_subscriptions_still_follows_alpha0() -> None:
    """Magnet Fig. 8b, Z = 8: 0.8 subscriptions a node cannot fill all topics, so popularity alone decides."""
    steep, flat = (generate("magnet-hierarchical", mean_subscriptions=8.0, initial_alpha=alpha) for alpha in (1.0, 0.0))
    assert steep.topic_nodes.sizes().max() > 10 * flat.topic_nodes.sizes().max()


def test_magnet_hierarchy_gives_everybody_a_home_topic_when_there_are_fewer_topics() -> None:
    assert generate("magnet-hierarchical", nodes=2_000, topics=256).node_topics.sizes().min() > 0


@pytest.mark.parametrize("first", [True, False])
def test_magnet_hierarchy_gives_first_subscriptions_to_nodes_in_turn_or_at_random(first: bool) -> None:
    """Magnet §4.4, two readings: with as many first subscriptions as nodes, all of them have one, or many have none."""
    workload = generate(
        "magnet-hierarchical", nodes=4_096, topics=256, mean_subscriptions=1.0, initial_fraction=1.0, home_topics=first
    )
    without = (workload.node_topics.sizes() == 0).mean()
    assert without == 0 if first else without > 0.2


@pytest.mark.parametrize(
    ("first", "size", "filled"),
    [("all", 1.0, True), ("in-turn", 1.0, True), ("all", 0.4, False), ("popular", 1.0, False)],
)
def test_magnet_hierarchy_fills_every_topic_first_or_popularity_decides_alone(
    first: str, size: float, filled: bool
) -> None:
    """Magnet §4.4 a, three readings; with α0 = 2 popularity alone leaves most topics empty."""
    sizes = {"nodes": 2_048, "topics": 1_024, "mean_subscriptions": size, "initial_fraction": 1.0}
    workload = generate("magnet-hierarchical", first_topics=first, **sizes)
    empty = (workload.topic_nodes.sizes() == 0).mean()
    assert empty == 0 if filled else empty > 0.3


def test_magnet_hierarchy_fills_topics_in_turn_as_far_as_subscriptions_go() -> None:
    """Magnet §4.4 a at Z = 8 of Fig. 8b: fewer first subscriptions than topics, so as many topics have one."""
    few = {"nodes": 2_048, "topics": 1_024, "mean_subscriptions": 0.4, "initial_fraction": 1.0}
    sizes = generate("magnet-hierarchical", first_topics="in-turn", **few).topic_nodes.sizes()
    assert np.bincount(sizes).tolist() == [1_024 - 819, 819]


def test_weights_that_vanish_are_taken_last() -> None:
    workload = generate("spidercast", nodes=20, exponent=200.0)
    assert all(workload.topics_of(node)[0] == 0 for node in range(20))


@pytest.mark.parametrize("seed", [-1, 2**63, 2**64])
def test_a_seed_that_is_no_word_is_one_sentence(seed: int) -> None:
    with pytest.raises(UsageError, match="seed="):
        generate("vitis-high", seed=seed, nodes=10)


def test_magnet_hierarchy_that_saturates_is_one_sentence() -> None:
    with pytest.raises(UsageError, match="lower homophily"):
        generate("magnet-hierarchical", nodes=64, topics=64, homophily=50.0)


def test_rates_are_a_power_law_of_mean_one() -> None:
    """Vitis §IV-D: at α = 3 almost all events are published on a single topic; at 0 all rates are equal."""
    rates = generate("vitis-random", nodes=10, rate_exponent=3.0).rates
    assert rates.mean() == pytest.approx(1)
    assert rates.max() / rates.sum() == pytest.approx(1 / np.sum(np.arange(1, 5_001) ** -3.0))
    assert set(generate("vitis-random", nodes=10).rates) == {1.0}


def test_churn_is_exponential_with_four_fifths_online() -> None:
    """SpiderCast §3.8: up for λ on average, down for λ/4, so 1,000 of 1,250 nodes are there at any time."""
    model = SpiderCastChurn(nodes=1_250, mean_up_s=100, duration_s=1_000)
    node, joined, left = model.sessions(1, 0, 1_250)
    for at in (0.0, 200.0, 500.0, 999.0):
        online = np.sum((joined <= at) & (np.isnan(left) | (left > at)))
        assert 940 < online < 1_060
    assert np.nanmax(left) < 1_000
    gaps = [
        later - earlier
        for n in range(1_250)
        for earlier, later in zip(left[node == n][:-1], joined[node == n][1:], strict=True)
    ]
    assert np.mean(gaps) == pytest.approx(25, rel=0.1)
    assert np.std(gaps) == pytest.approx(25, rel=0.15)


def test_overnets_churn_turns_over_a_quarter_of_all_nodes_an_hour() -> None:
    """Rappel §6.1.3, §6.2.3: 25 % an hour; 5,000 online, 30 joins and 30 leaves a minute. Steady from the start."""
    _, joined, left = OvernetChurn().sessions(1, 0, 7_200)
    for at in (0.0, 3_600.0, 14_399.0):
        assert np.sum((joined <= at) & ~(left <= at)) == pytest.approx(5_040, rel=0.03)
    for hour in range(4):
        for times in (left, joined[joined > 0]):
            changes = np.sum((times > hour * 3_600) & (times <= (hour + 1) * 3_600))
            assert changes / 7_200 == pytest.approx(0.25, rel=0.08)  # 3.4 standard deviations
    assert np.sum(joined > 0) / 240 == pytest.approx(30, rel=0.05)
    assert np.sum(left > 0) / 240 == pytest.approx(30, rel=0.05)


@pytest.mark.parametrize(("hourly", "online"), [(0.1, 0.5), (2.0, 0.9)])
def test_overnets_churn_follows_its_parameters(hourly: float, online: float) -> None:
    _, joined, left = OvernetChurn(nodes=4_000, hourly=hourly, online=online, duration_s=36_000.0).sessions(3, 0, 4_000)
    assert np.sum(left > 0) / 4_000 / 10 == pytest.approx(hourly, rel=0.05)
    assert np.sum((joined <= 20_000) & ~(left <= 20_000)) / 4_000 == pytest.approx(online, rel=0.05)


def test_an_outage_takes_a_random_half_for_an_hour() -> None:
    """Rappel §6.2.2: 50 % fail at t = 2 h and rejoin at t = 3 h."""
    node, joined, left = Outage(nodes=250).sessions(1, 0, 250)
    there = {
        hours: set(node[(joined <= hours * 3_600) & ~(left <= hours * 3_600)].tolist())
        for hours in (0, 1.99, 2, 2.99, 3)
    }
    assert [len(nodes) for nodes in there.values()] == [250, 250, 125, 125, 250]
    assert np.isnan(left).sum() == 250
    others = Outage(nodes=250).sessions(2, 0, 250)
    assert there[2] != set(others[0][np.isnan(others[2]) & (others[1] == 0)].tolist())
    parts = [Outage(nodes=250).sessions(1, *ends) for ends in ((0, 90), (90, 250))]
    together = sorted((*row,) for part in parts for row in zip(*(np.nan_to_num(a, nan=-1) for a in part), strict=True))
    assert together == sorted((*row,) for row in zip(node, joined, np.nan_to_num(left, nan=-1), strict=True))


def test_a_feed_is_published_by_node_0_who_does_not_subscribe() -> None:
    """Rappel §6.4: 500 subscribers among 501 or 5,001 nodes; §6.2.2: 5,000 subscribers and a publisher."""
    for parameters, nodes, subscribers in (({}, 5_001, 5_000), ({"subscribers": 500}, 5_001, 500)):
        feed = generate("rappel-feed", **parameters)
        assert (feed.node_count, feed.topic_count, feed.publishers.tolist()) == (nodes, 1, [0])
        assert len(feed.subscribers_of(0)) == subscribers
        assert 0 not in feed.subscribers_of(0)
    assert np.mean(feed.subscribers_of(0)) == pytest.approx(2_500, rel=0.1)  # from all of them


def test_correlation_makes_interests_cluster() -> None:
    """The random pattern's common-interest graph is near-uniform; the high one's has strong communities."""

    def clustering(name: str) -> float:
        workload = generate(name, nodes=300)
        graph: nx.Graph[int] = nx.Graph()
        graph.add_nodes_from(range(300))
        rows = [set(workload.topics_of(n).tolist()) for n in range(300)]
        graph.add_edges_from((a, b) for a in range(300) for b in range(a) if len(rows[a] & rows[b]) >= 5)
        return float(nx.average_clustering(graph))

    assert clustering("vitis-high") > 0.3 > clustering("vitis-random")


@pytest.mark.parametrize(
    ("name", "wrong", "expected"),
    [
        ("vitis-low", {"topics": 4_999}, "multiple of buckets"),
        ("vitis-high", {"buckets_per_node": 101}, "only 100 buckets"),
        ("vitis-high", {"subscriptions_per_node": 51}, "multiple of buckets_per_node"),
        ("vitis-high", {"subscriptions_per_node": 102}, "hold only 100 topics"),
        ("vitis-random", {"nodes": 0}, "at least 1"),
        ("twitter-like", {"nodes": 100}, "mean_degree=80: is more than the 49 that a user may follow"),
        ("spidercast", {"min_subscriptions": 20}, "more than max_subscriptions"),
        ("spidercast", {"max_subscriptions": 101}, "only 100 topics"),
        ("spidercast", {"popularity": "pareto"}, "choose one of zipf, exponential, uniform"),
        (
            "spidercast",
            {"popularity": "exponential", "topics": 9, "min_subscriptions": 1, "max_subscriptions": 1},
            "10",
        ),
        ("magnet-modal", {"modes": 7}, "multiple of modes"),
        ("magnet-modal", {"modes_per_node": 11}, "only 10 modes"),
        ("magnet-modal", {"modes": 50}, "hold only 20 topics"),
        ("magnet-spatial", {"nodes": 10}, "less than 0.9"),
        ("magnet-hierarchical", {"topics": 1_000}, "power of two"),
        ("omen", {"max_subscriptions": 201}, "only 200 topics"),
        ("rappel-feed", {"subscribers": 5_001}, "only 5000 nodes besides the publisher"),
        ("rappel-feed", {"nodes": 1}, "at least 2"),
        ("vitis-random", {"colour": "red"}, "has no parameter colour"),
        ("spidercast-churn", {}, "makes churn"),
        ("nothing", {}, "choose one of vitis-random"),
    ],
)
def test_impossible_parameters_are_one_sentence(name: str, wrong: dict[str, Any], expected: str) -> None:
    with pytest.raises(UsageError, match=expected):
        generate(name, **wrong)


def test_an_outage_that_ends_before_it_begins_is_one_sentence() -> None:
    with pytest.raises(UsageError, match="returns_s=5: needs to be later than fails_s=10"):
        Outage(fails_s=10.0, returns_s=5.0)


def test_every_parameter_says_where_it_comes_from() -> None:
    for model in MODELS.values():
        assert issubclass(model, SubscriptionModel | ChurnModel)
        for field in dataclasses.fields(model):
            assert field.metadata["source"], (model, field.name)
