"""Names, labels and formats of metrics, and what becomes of a name that nobody knows."""

from __future__ import annotations

from dataclasses import replace

import pytest

from grapevine.metrics.catalogue import CATALOGUE, Metric, add, described, metric
from grapevine.metrics.course import PER_CHANGE
from grapevine.metrics.live import RSS_PER_NODE_BYTES
from grapevine.metrics.timed import DELAY_MS_AT
from grapevine.metrics.traffic import HIT_RATIO
from grapevine.model.errors import UsageError
from grapevine.systems.contracts.trees import REJOINS_AT_HEIGHT


def test_a_metric_is_found_by_its_name() -> None:
    assert metric("hit_ratio") is HIT_RATIO


@pytest.mark.parametrize(
    ("name", "family", "label"),
    [
        ("delay_ms_p50", DELAY_MS_AT, "delay, median"),
        ("delay_ms_p95", DELAY_MS_AT, "delay, p95"),
        ("rejoins_at_height_3", REJOINS_AT_HEIGHT, "rejoins at height 3"),
        ("connect_ok_per_change", PER_CHANGE, "connect ok per join or leave"),
    ],
)
def test_a_member_of_a_family_is_found_by_its_name(name: str, family: Metric, label: str) -> None:
    found = metric(name)
    assert (found.name, found.label) == (name, label)
    assert found == family.member(name)
    assert (found.unit, found.share, found.better) == (family.unit, family.share, family.better)


@pytest.mark.parametrize("name", ["hit_ration", "delay_ms_p", "rejoins_at_height_", "rejoins_at_height_{number}", ""])
def test_an_unknown_name_is_answered_with_the_known_ones(name: str) -> None:
    with pytest.raises(UsageError, match=r"is not measured.*known are .*hit_ratio, .*overhead"):
        metric(name)


def test_a_name_that_is_nearly_right_is_answered_with_the_right_one() -> None:
    with pytest.raises(UsageError, match=r"did you mean hit_ratio\?"):
        metric("hit_ration")


def test_a_family_has_no_member_of_a_name_that_it_would_not_find_again() -> None:
    with pytest.raises(UsageError, match="no member of this family is called rejoins_at_height_top"):
        REJOINS_AT_HEIGHT.of(number="top")


def test_one_name_cannot_mean_two_things() -> None:
    assert add(HIT_RATIO) is HIT_RATIO
    with pytest.raises(ValueError, match="hit_ratio: declared twice"):
        add(replace(HIT_RATIO, label="something else"))
    assert metric("hit_ratio") is HIT_RATIO


def test_values_are_written_by_what_they_are() -> None:
    assert HIT_RATIO.shown(0.931) == "93.10%"
    assert HIT_RATIO.shown(None) == "–"
    assert HIT_RATIO.shown_with_spread(0.9, 0.01) == "90.00% ± 1.00%"
    assert metric("degree").shown(12.0) == "12"
    assert metric("delay_ms_p95").shown(1234.56) == "1,234.6"
    assert RSS_PER_NODE_BYTES.shown(3 * 2**19) == "1.5"


def test_a_heading_names_the_unit_unless_the_label_does() -> None:
    assert metric("delay_ms_p95").heading == "delay, p95, ms"
    assert metric("hops_max").heading == "hops, max"
    assert metric("degree").heading == "degree"


def test_what_another_version_measured_is_shown_as_a_plain_number() -> None:
    assert described("never_heard_of").heading == "never heard of"
    assert described("never_heard_of").shown(0.5) == "0.5"
    assert described("hit_ratio") is HIT_RATIO


def test_every_metric_says_what_it_is() -> None:
    assert len(CATALOGUE) > 80
    for found in CATALOGUE.values():
        assert found.label and not found.label.endswith("."), found.name
        assert found.definition.endswith(".") and found.definition[0].isupper(), found.name


def test_labels_tell_metrics_apart() -> None:
    """But `delay_ms` is the median in the headline numbers of one run, and `delay_ms_p50` that over many."""
    headings = [found.heading for found in CATALOGUE.values()]
    assert len(set(headings)) == len(headings)
