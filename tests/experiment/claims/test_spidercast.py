"""Judges of SpiderCast's claims: what they say about series that were written down by hand."""

from __future__ import annotations

from typing import Any

from grapevine.experiment.claims import Grade
from tests.experiment.claims.series import row, verdict

Series = dict[str, list[dict[str, Any]]]

SIZES = 1000, 2000, 4000, 6000, 8000, 10000
DEGREES = 10.81, 10.11, 9.53, 9.24, 9.08, 8.95
KINDS = "messages", "connect", "connect_ok", "redirect", "disconnect", "disconnect_ok", "leave"
PERIODS = "spidercast_fig11", "spidercast_fig11_400ms", "spidercast_fig11_800ms"
LAMBDAS = 100.0, 200.0, 300.0, 400.0, 500.0


def along(workload: str, metric: str, values: Any, *, system: str = "spidercast", **point: Any) -> list[dict[str, Any]]:
    """A point for each size, or for as many of them as there are values."""
    curve = values if isinstance(values, (tuple, list)) else [values] * len(SIZES)
    return [row(system, workload, metric, value, nodes=n, **point) for n, value in zip(SIZES, curve, strict=False)]


def test_s1_wants_every_degree_within_ten_percent() -> None:
    def degrees(last: float) -> Series:
        return {"spidercast_fig12": along("RSS", "degree", [*DEGREES[:-1], last])}

    assert verdict("S1", degrees(8.99))[0] == Grade.MET
    assert verdict("S1", degrees(8.0))[0] == Grade.DIRECTION
    assert verdict("S1", degrees(9.8))[0] == Grade.NOT_MET  # within ten percent, but it does not fall


def test_s1_takes_the_sizes_that_a_quick_run_has() -> None:
    assert verdict("S1", {"spidercast_fig12": along("RSS", "degree", DEGREES[:2])})[0] == Grade.MET
    assert verdict("S1", {"spidercast_fig12": along("RSS", "degree", DEGREES[:1])})[0] == Grade.NOT_HERE


def test_s2_is_met_by_diameters_inside_topics_and_by_those_by_way_of_any_node_under_another_definition() -> None:
    def series(inside: tuple[int, ...], anywhere: tuple[int, ...], broken: float = 0.0) -> Series:
        made = []
        for i, name in enumerate(("RSS", "Zipf 1", "NYSE", "uniform")):
            made += along(name, "degree", 11.0) + along(name, "partitioned_topics", broken)
            made += along(name, "diameter_max", [inside[i] - 2, *[inside[i]] * 5])
            made += along(name, "overlay_diameter_max", [anywhere[i] - 2, *[anywhere[i]] * 5])
        return {"spidercast_fig7": made}

    assert verdict("S2", series((6, 7, 8, 6), (5, 5, 5, 5)))[0] == Grade.MET
    assert verdict("S2", series((10, 10, 10, 10), (6, 7, 7, 6)))[0] == Grade.OTHER_DEFINITION
    assert verdict("S2", series((10, 10, 10, 10), (6, 7, 7, 6), broken=0.2))[0] == Grade.OTHER_DEFINITION
    assert verdict("S2", series((10, 10, 10, 10), (6, 7, 7, 6), broken=0.6))[0] == Grade.NOT_MET
    assert verdict("S2", series((10, 10, 10, 10), (6, 7, 7, 8)))[0] == Grade.NOT_MET


def zipf_2(alone: dict[str | None, Any], *, more: Any = 0.0, four: dict[str | None, Any] | None = None) -> Series:
    """Partitioned topics at (3, 0) by ties, at (3, 1), and at (4, 0)."""
    made = []
    for ties in (None, "order", "stream"):
        point = {"ties": ties} if ties else {}
        for random, broken, degree in ((0, alone.get(ties, 0.0), 7.0), (1, more, 13.0)):
            made += along("Zipf 2", "partitioned_topics", broken, random_coverage=random, **point)
            made += along("Zipf 2", "degree", degree, random_coverage=random, **point)
        broken = (four or {}).get(ties, 0.0)
        made += along("Zipf 2", "partitioned_topics", broken, random_coverage=0, greedy_coverage=4, **point)
    return {"spidercast_fig6": made}


def test_s3_wants_pieces_in_large_networks_alone_and_none_with_random_links() -> None:
    printed = [0, 0, 0, 15, 14, 14]
    assert verdict("S3", zipf_2({None: printed}))[0] == Grade.MET
    assert verdict("S3", zipf_2({"stream": printed}))[0] == Grade.OTHER_DEFINITION
    assert verdict("S3", zipf_2({"order": printed}))[0] == Grade.NOT_MET
    assert verdict("S3", zipf_2({None: printed, "stream": printed}, more=1.0))[0] == Grade.NOT_MET


def test_s15_wants_pieces_at_four_and_zero() -> None:
    assert verdict("S15", zipf_2({}, four={None: 3.0}))[0] == Grade.MET
    assert verdict("S15", zipf_2({}, four={"stream": 3.0}))[0] == Grade.OTHER_DEFINITION
    assert verdict("S15", zipf_2({None: 9.0}))[0] == Grade.NOT_MET


def test_s5_wants_hubs_and_short_ways_and_says_which_reading_has_them() -> None:
    def series(most: dict[str | None, float], inside: float, anywhere: float) -> Series:
        made = []
        for ties in (None, "order", "stream"):
            for topics in (100, 200):
                point: dict[str, Any] = {"topics": topics} | ({"ties": ties} if ties else {})
                made += along("RSS", "degree", DEGREES, **point) + along("RSS", "degree_max", most[ties], **point)
                made += along("RSS", "diameter_max", inside, **point)
                made += along("RSS", "overlay_diameter_max", anywhere, **point)
        return {"spidercast_fig8a": made}

    assert verdict("S5", series({None: 32, "order": 35, "stream": 33}, 6, 5))[0] == Grade.MET
    assert verdict("S5", series({None: 17, "order": 35, "stream": 33}, 10, 6))[0] == Grade.OTHER_DEFINITION
    assert verdict("S5", series({None: 17, "order": 35, "stream": 17}, 10, 6))[0] == Grade.DIRECTION


def test_s6_wants_slow_growth_and_a_diameter_that_falls_from_five_to_four() -> None:
    def series(last: float, inside: tuple[float, float], anywhere: tuple[float, float]) -> Series:
        shown = {"degree": (10.0, last), "diameter_max": inside, "overlay_diameter_max": anywhere}
        return {
            "spidercast_fig8b": [
                row("spidercast", "RSS", metric, value, topics=topics)
                for metric, values in shown.items()
                for topics, value in zip((100, 1000), values, strict=True)
            ]
        }

    assert verdict("S6", series(25, (5, 4), (5, 4)))[0] == Grade.MET
    assert verdict("S6", series(25, (10, 9), (6, 5)))[0] == Grade.OTHER_DEFINITION
    assert verdict("S6", series(25, (10, 9), (7, 6)))[0] == Grade.DIRECTION
    assert verdict("S6", series(35, (5, 4), (5, 4)))[0] == Grade.NOT_MET


def test_s7_wants_a_peak_at_twenty_topics_over_the_sizes_together() -> None:
    def degrees(small: tuple[float, ...], large: tuple[float, ...]) -> Series:
        names = [f"{s} topics a node" for s in (10, 15, 20, 30, 40)]
        pairs = zip(names, small, large, strict=True)
        return {"spidercast_fig8c": [one for name, a, b in pairs for one in along(name, "degree", [a, *[b] * 5])]}

    peak = 9, 10, 11, 10, 9
    assert verdict("S7", degrees(peak, peak))[0] == Grade.MET
    assert verdict("S7", degrees((9, 11, 10.9, 10, 9), peak))[0] == Grade.MET  # it is earlier in the smallest network
    assert verdict("S7", degrees(peak, (9, 10, 11, 12, 9)))[0] == Grade.NOT_MET


def test_s8_grades_a_degree_that_moves_as_the_direction_alone() -> None:
    def series(partial: float, broken: float = 0.0) -> Series:
        shares = {0.05: partial, 1.0: 10.0}
        made = [
            row("spidercast", "RSS", metric, value, nodes=n, view_share=share)
            for n in (4000, 8000)
            for share, degree in shares.items()
            for metric, value in (("degree", degree), ("partitioned_topics", broken))
        ]
        small = [row("spidercast", "small", "degree", partial, nodes=n) for n in (200, 400)]
        return {"spidercast_fig10": made + small}

    assert verdict("S8", series(11.9))[0] == Grade.MET
    assert verdict("S8", series(13.0))[0] == Grade.DIRECTION
    assert verdict("S8", series(11.9, broken=0.2))[0] == Grade.NOT_MET


def churn(*, messages: dict[str, tuple[float, float]], degree: tuple[float, float], connected: float = 1.0) -> Series:
    """Messages per change and degrees with 1,000 and 2,000 online, by target rule; connected topics at every period."""
    made: Series = {}
    for name in PERIODS:
        made[name] = []
        for rule, per_change in messages.items():
            for online, value, links in zip((1000, 2000), per_change, degree, strict=True):
                for up in LAMBDAS:
                    point = {"mean_up_s": up, "target_rule": rule}
                    shown = {f"{kind}_per_change": value for kind in KINDS}
                    shown |= {"degree_on_the_way": links, "connected_topics_min": connected}
                    made[name] += [
                        row("spidercast", f"{online} online", metric, number, parameters=point)
                        for metric, number in shown.items()
                    ]
    return made


def test_s9_wants_every_topic_connected_in_every_snapshot() -> None:
    messages = {"prose": (40.0, 40.0), "printed": (20.0, 18.0)}
    assert verdict("S9", churn(messages=messages, degree=(12, 12)))[0] == Grade.MET
    assert verdict("S9", churn(messages=messages, degree=(12, 12), connected=0.995))[0] == Grade.DIRECTION
    assert verdict("S9", churn(messages=messages, degree=(12, 12), connected=0.8))[0] == Grade.NOT_MET


def test_s10_is_judged_as_printed_and_on_both_sizes() -> None:
    def messages(small: float, large: float) -> Series:
        return churn(messages={"prose": (90.0, 90.0), "printed": (small, large)}, degree=(13, 12))

    assert verdict("S10", messages(40, 40))[0] == Grade.MET
    assert verdict("S10", messages(22, 20))[0] == Grade.OTHER_DEFINITION  # a join and its leave: 44 and 40
    assert verdict("S10", messages(40, 50))[0] == Grade.NOT_MET


def test_s16_is_judged_by_the_prose() -> None:
    messages = {"prose": (40.0, 40.0), "printed": (20.0, 18.0)}
    assert verdict("S16", churn(messages=messages, degree=(11.7, 11.0)))[0] == Grade.MET
    assert verdict("S16", churn(messages=messages, degree=(10.5, 11.0)))[0] == Grade.DIRECTION


RIVALS = {(10, 0): 10.08, (9, 1): 10.22, (8, 2): 10.20, (7, 3): 10.21, (0, 10): 10.3, (20, 0): 20.04, (0, 20): 20.0}


def rivals(metric: str, values: dict[tuple[int, int], Any]) -> list[dict[str, Any]]:
    return [
        one
        for (x, y), value in values.items()
        for one in along("RSS", metric, value, system="similarity", similar=x, random=y)
    ]


def test_s11_wants_one_component_a_topic_and_more_of_every_rival() -> None:
    growing = [101, 102, 103, 104, 105, 106]

    def series(own: float, worst: Any) -> Series:
        counts = dict.fromkeys(RIVALS, growing) | {(20, 0): worst}
        return {"spidercast_fig13": along("RSS", "clusters", own) + rivals("clusters", counts)}

    assert verdict("S11", series(100.0, growing))[0] == Grade.MET
    assert verdict("S11", series(100.2, growing))[0] == Grade.DIRECTION
    assert verdict("S11", series(100.0, [100, *growing[1:]]))[0] == Grade.NOT_MET


def test_s14_wants_every_degree_within_five_percent() -> None:
    def series(**last: Any) -> Series:
        own = along("RSS", "degree", DEGREES)
        return {"spidercast_fig13": own + rivals("degree", RIVALS | {(8, 2): last.get("degree", 10.2)})}

    assert verdict("S14", series())[0] == Grade.MET
    assert verdict("S14", series(degree=10.8))[0] == Grade.DIRECTION
    assert verdict("S14", series(degree=13.0))[0] == Grade.NOT_MET


def test_s12_wants_both_ends_of_the_range_and_a_rise_between() -> None:
    def degrees(*rings: float) -> Series:
        own, more = along("RSS", "degree", 10.0), along("RSS", "degree", rings, system="ring-per-topic")
        return {"spidercast_fig14": own + more}

    good = 15.0, 15.5, 16.0, 16.5, 17.0, 18.0
    grade, measured = verdict("S12", degrees(*good))
    assert grade == Grade.MET
    assert measured.startswith("50/55/60/65/70/80 % higher at 1,000 … 10,000 nodes")
    assert verdict("S12", degrees(*good[:5], 17.1, 16.0))[0] == Grade.MET
    assert verdict("S12", degrees(12.0, *good[1:]))[0] == Grade.DIRECTION
    assert verdict("S12", degrees(*good[:5], 15.0))[0] == Grade.NOT_MET


def test_s13_wants_the_same_degree_whatever_the_spread_and_degrees_around_it() -> None:
    def series(unequal: float, deviation: float) -> Series:
        degree = {"20 topics each": 10.0, "40 topics each": 9.0, "10 to 30 topics": unequal, "10 to 70 topics": 9.2}
        made = [row("spidercast", name, "degree", value) for name, value in degree.items()]
        made += [row("spidercast", name, "degree_deviation", deviation) for name in degree]
        return {"spidercast_fig9": made}

    assert verdict("S13", series(10.5, 3.0))[0] == Grade.MET
    assert verdict("S13", series(11.5, 3.0))[0] == Grade.DIRECTION
    assert verdict("S13", series(10.5, 6.0))[0] == Grade.DIRECTION
    assert verdict("S13", series(13.0, 3.0))[0] == Grade.NOT_MET


def test_s17_wants_45_percent_fewer_links_than_rings_and_than_rivals_still_in_pieces() -> None:
    def series(ring: float, components: float = 110.0) -> Series:
        more = rivals("degree", RIVALS) + rivals("clusters", dict.fromkeys(RIVALS, components))
        rings = along("RSS", "degree", 9.0) + along("RSS", "degree", ring, system="ring-per-topic")
        return {"spidercast_fig14": rings, "spidercast_fig13": more}

    assert verdict("S17", series(16.0))[0] == Grade.MET
    assert verdict("S17", series(14.0))[0] == Grade.DIRECTION
    assert verdict("S17", series(16.0, components=100.0))[0] == Grade.NOT_MET


def test_s18_wants_the_order_of_degrees_to_be_that_of_similarity_turned_round() -> None:
    def series(middle: float) -> Series:
        made = []
        for name, degree, alike in (("RSS", 10, 50), ("Zipf 1", middle, 60), ("NYSE", 8, 70), ("uniform", 11, 40)):
            made += along(name, "degree", [degree - 0.1 * i for i in range(6)]) + along(name, "top_intersection", alike)
        return {"spidercast_fig7": made}

    assert verdict("S18", series(9.0))[0] == Grade.MET
    assert verdict("S18", series(10.5))[0] == Grade.NOT_MET  # more alike than RSS, and yet of more links
    assert verdict("S18", series(7.5))[0] == Grade.NOT_MET
