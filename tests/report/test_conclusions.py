"""The sentence above a figure, from made-up points."""

from __future__ import annotations

from typing import Any

import pytest

from grapevine.report.axes import XAxis
from grapevine.report.conclusions import conclude
from grapevine.report.looks import Key
from grapevine.report.points import PlotData

VITIS, RVR, OPT = (("vitis", "", ""), ("rvr", "", ""), ("opt", "", ""))


def made(
    lines: dict[Key, dict[Any, float]],
    *,
    half: float = 0.0,
    x: XAxis | None = None,
    kind: str = "series",
    percent: bool = False,
    better: str | None = "low",
    step: float | None = None,
) -> PlotData:
    """A plot of these values by their places on x; None is the place of what holds everywhere."""
    points = [
        (key, {"y": y, "low": y - half, "high": y + half} | ({} if at is None else {"x": at}))
        for key, line in lines.items()
        for at, y in line.items()
    ]
    return PlotData(kind, points, x or XAxis("size"), "hops", percent, better=better, step=step)


def test_a_series_tells_who_is_best_at_both_ends_and_that_lines_keep_their_order() -> None:
    lines = {VITIS: {5: 3.0, 10: 2.0}, RVR: {5: 9.0, 10: 8.0}, OPT: {5: 4.0, 10: 3.5}}
    assert conclude(made(lines)) == (
        "At size 5, vitis is best (3), rvr worst (9); likewise at 10 (2 and 8). No two lines cross."
    )


def test_what_is_good_depends_on_the_metric() -> None:
    lines = {VITIS: {5: 0.9}, RVR: {5: 0.5}}
    assert conclude(made(lines, better="high", percent=True)) == "At size 5, vitis is best (90%), rvr worst (50%)."
    assert conclude(made(lines, better="low", percent=True)) == "At size 5, rvr is best (50%), vitis worst (90%)."
    assert conclude(made(lines, better=None, percent=True)) == "At size 5, vitis is highest (90%), rvr lowest (50%)."


def test_lines_that_cross_are_named_with_the_place() -> None:
    lines = {VITIS: {5: 3.0, 10: 4.0, 20: 6.0}, RVR: {5: 5.0, 10: 5.0, 20: 5.0}}
    assert conclude(made(lines)) == (
        "At size 5, vitis is best (3), rvr worst (5); at 20, rvr is best (5), vitis worst (6). "
        "Vitis and rvr cross between 10 and 20."
    )


def test_of_many_crossings_only_the_number_is_told() -> None:
    lines: dict[Key, dict[Any, float]] = {(f"s{i}", "", ""): {1: float(i), 2: 5.0 - i} for i in range(4)}
    assert conclude(made(lines)).endswith(". 6 pairs of lines cross.")


def test_lines_that_touch_do_not_cross() -> None:
    lines = {VITIS: {1: 3.0, 2: 5.0, 3: 3.0}, RVR: {1: 5.0, 2: 5.0, 3: 5.0}}
    assert conclude(made(lines)).endswith("No two lines cross.")


def test_values_are_alike_when_their_intervals_overlap_or_they_are_written_alike() -> None:
    lines = {VITIS: {5: 3.0}, RVR: {5: 3.5}, OPT: {5: 9.0}}
    assert conclude(made(lines, half=0.3)) == "At size 5, vitis and rvr are best (3), opt worst (9)."
    assert conclude(made(lines, half=0.2)) == "At size 5, vitis is best (3), opt worst (9)."
    assert conclude(made({VITIS: {5: 1.0}, RVR: {5: 1.00001}})) == "At size 5, both are alike (1)."
    assert conclude(made(lines, half=3.0)) == "At size 5, all are alike (3 to 9)."


def test_who_lies_between_is_not_called_worst_though_it_is_like_the_worst() -> None:
    lines = {VITIS: {5: 1.0}, RVR: {5: 1.5}, OPT: {5: 2.0}}
    assert conclude(made(lines, half=0.3)) == "At size 5, vitis and rvr are best (1), opt worst (2)."


def test_a_value_that_is_missing_at_an_end_is_not_ranked_there() -> None:
    lines = {VITIS: {5: 3.0, 10: 2.0}, RVR: {10: 1.0}, OPT: {5: 4.0}}
    assert conclude(made(lines)) == (
        "At size 5, vitis is best (3), opt worst (4); at 10, rvr is best (1), vitis worst (2). No two lines cross."
    )
    assert conclude(made({VITIS: {5: 3.0, 10: 2.0}, RVR: {10: 1.0}})).startswith("At size 5, vitis has 3; at 10, rvr")


def test_what_has_no_x_counts_at_both_ends() -> None:
    lines = {VITIS: {5: 3.0, 10: 1.0}, OPT: {None: 2.0}}
    assert conclude(made(lines)) == (
        "At size 5, opt is best (2), vitis worst (3); at 10, vitis is best (1), opt worst (2). "
        "Vitis and opt cross between 5 and 10."
    )


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        ({5: 3.0, 10: 2.0}, "Hops falls from 3 at size 5 to 2 at 10."),
        ({5: 2.0, 10: 3.0}, "Hops rises from 2 at size 5 to 3 at 10."),
        ({5: 2.0, 10: 2.0}, "Hops is about the same at size 5 (2) and at 10 (2)."),
        ({5: 2.0}, "Hops is 2 at size 5."),
    ],
)
def test_one_line_alone_tells_where_it_goes(line: dict[Any, float], expected: str) -> None:
    assert conclude(made({VITIS: line})) == expected


def test_a_system_stands_for_all_its_series_and_the_few_are_left_out_of_the_many() -> None:
    keys: list[Key] = [(system, on, "") for system in ("vitis", "rvr", "opt") for on in ("high", "low")]
    values = dict.fromkeys(keys, 1.0) | {("opt", "low", ""): 9.0}
    said = conclude(made({key: {5: value} for key, value in values.items()}))
    assert said == "At size 5, vitis, rvr and opt · high are best (1), opt · low worst (9)."
    more: list[Key] = [(system, "low", "") for system in "abcdef"]
    values = dict.fromkeys(more, 1.0) | {("f", "low", ""): 9.0}
    assert conclude(made({key: {5: value} for key, value in values.items()})).startswith(
        "At size 5, all but f are best"
    )
    ranks = {key: float(i >= 4) for i, key in enumerate([(system, "low", "") for system in "abcdefgh"])}
    assert "a, b and 2 more are best (0), e, f and 2 more worst (1)" in conclude(
        made({key: {5: value} for key, value in ranks.items()})
    )


def test_categories_tell_who_is_best_on_each() -> None:
    lines = {VITIS: {"high": 3.0, "low": 4.0}, RVR: {"high": 5.0, "low": 2.0}}
    axis = XAxis("workload", ("high", "low"), connected=False)
    assert (
        conclude(made(lines, x=axis))
        == "On high, vitis is best (3), rvr worst (5); on low, rvr is best (2), vitis worst (4)."
    )
    many = {key: dict.fromkeys("abcd", 1.0 + (key == RVR)) | {"e": 2.0 - (key == RVR)} for key in (VITIS, RVR)}
    axis = XAxis("workload", tuple("abcde"), connected=False)
    assert conclude(made(many, x=axis)) == "Vitis is best on 4 of 5 workloads, rvr on 1."


def test_systems_along_x_are_ranked_themselves() -> None:
    axis = XAxis("system", ("vitis", "rvr"), connected=False)
    assert conclude(made({("", "", ""): {"vitis": 3.0, "rvr": 9.0}}, x=axis)) == "Vitis is best (3), rvr worst (9)."


def test_series_with_a_place_each_are_ranked_at_once() -> None:
    axis = XAxis("", ("vitis", "rvr"), connected=False, shared=False)
    assert conclude(made({VITIS: {"vitis": 3.0}, RVR: {"rvr": 9.0}}, x=axis)) == "Vitis is best (3), rvr worst (9)."
    assert conclude(made({VITIS: {"vitis": 3.0}}, x=axis)) == "", "nothing to compare"


def test_a_distribution_tells_medians_and_tails() -> None:
    lines = {VITIS: {3: 0.5, 4: 0.48, 9: 0.02}, RVR: {7: 0.2, 8: 0.8}}
    assert conclude(made(lines, kind="distribution", x=XAxis("degree"))) == (
        "Degree: the median is 3 with vitis and 8 with rvr; the 99th percentile is 8 with rvr and 9 with vitis."
    )
    same = {key: {3: 0.6, 4: 0.4} for key in (VITIS, RVR, OPT)}
    assert conclude(made(same, kind="distribution", x=XAxis("degree"))) == (
        "Degree: the median is 3 with all; the 99th percentile is 4 with all."
    )
    alone = {VITIS: {3: 0.6, 4: 0.4}}
    assert conclude(made(alone, kind="distribution", x=XAxis("degree"))) == (
        "Degree: the median is 3; the 99th percentile is 4."
    )


def test_a_distribution_in_steps_tells_ranges_and_a_system_all_of_its_series() -> None:
    lines: dict[Key, dict[Any, float]] = {
        ("vitis", "high", ""): {0.0: 1.0},
        ("vitis", "low", ""): {0.0: 0.4, 0.3: 0.6},
        ("opt", "high", ""): {0.0: 1.0},
    }
    data = made(lines, kind="distribution", x=XAxis("overhead", percent=True), step=0.1)
    assert conclude(data) == (
        "Overhead: the median is 0% to 10% with opt and 0% to 40% with vitis; "
        "the 99th percentile is 0% to 10% with opt and 0% to 40% with vitis."
    )


def test_of_many_distributions_only_the_ends_are_told() -> None:
    lines: dict[Key, dict[Any, float]] = {(f"s{i}", "", ""): {float(i): 1.0} for i in range(6)}
    said = conclude(made(lines, kind="distribution", x=XAxis("degree")))
    assert said.startswith("Degree: the median is 0 with s0 to 5 with s5; ")


def test_progress_tells_when_a_line_settles_and_how_low_it_falls() -> None:
    rounds = [0.1, 0.5, 0.99, 1.0, 0.7, 0.9, 1.0, 1.0, 1.0, 1.0]
    data = made({VITIS: dict(enumerate(rounds))}, kind="progress", x=XAxis("round"), percent=True, better="high")
    assert conclude(data) == (
        "Vitis reaches its final level (100%) at round 2; the lowest point after that is 70% at round 4."
    )


def test_what_is_better_low_has_a_highest_point() -> None:
    lines = {VITIS: dict(enumerate([5.0, 1.0, 3.0, 1.0, 1.0])), RVR: dict(enumerate([5.0, 5.0, 2.0, 2.0, 2.0]))}
    assert conclude(made(lines, kind="progress", x=XAxis("round"))) == (
        "Vitis reaches its final level (1) at round 1, rvr (2) at 2; "
        "the highest point after that is 3 of vitis at round 2."
    )


def test_a_line_that_only_sinks_reaches_its_level_at_the_end() -> None:
    sinking = {VITIS: {at: 1.0 - at / 1000 for at in range(40)}}
    assert conclude(made(sinking, kind="progress", x=XAxis("round"), percent=True, better="high")) == (
        "Vitis reaches its final level (96.25%) at round 37; the lowest point after that is 96.1% at round 39."
    )


def test_progress_without_a_fall_says_so() -> None:
    rising = dict(enumerate([0.2, 1.0, 1.0]))
    assert conclude(made({VITIS: rising}, kind="progress", x=XAxis("round"), better="high")).endswith("it stays there.")
    both = {VITIS: rising, RVR: rising}
    assert conclude(made(both, kind="progress", x=XAxis("round"), better="high")).endswith("none leaves it.")
    single = conclude(made({VITIS: {7: 0.5}}, kind="progress", x=XAxis("round"), better="high"))
    assert single == "Vitis reaches its final level (0.5) at round 7; after that it stays there."


def test_of_many_lines_the_first_and_the_last_to_settle_are_named() -> None:
    lines: dict[Key, dict[Any, float]] = {
        (f"s{i}", "", ""): {at: float(at >= i) for at in range(10)} for i in range(1, 5)
    }
    assert conclude(made(lines, kind="progress", x=XAxis("round"), better="high")) == (
        "Of 4 lines, s1 reaches its final level (1) at round 1 first, s4 (1) at 4 last; after that none leaves it."
    )


def test_without_points_there_is_nothing_to_say() -> None:
    assert conclude(made({})) == ""
