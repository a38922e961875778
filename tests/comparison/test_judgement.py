"""What is recommended, of choices whose costs are made up."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from grapevine.comparison.costs import Choice, Rates
from grapevine.comparison.judgement import Judgement, front, judge

RATES = Rates(nodes=100, topics=50, events_a_day=24.0, payload=1_000, source="assumed")


def choice(system: str, connections: float, sent: float, hops: float, **others: Any) -> Choice:
    costs: dict[str, Any] = {
        "links": None,
        "parameters": {},
        "needs": "",
        "delivered": 1.0,
        "delivered_in_crash": None,
        "connections": connections,
        "connections_max": 2 * connections,
        "bytes_a_second": sent,
        "hops": hops,
        "hops_p99": 3 * hops,
        "overhead": 0.0,
        "busiest": 1.0,
    }
    return Choice(system, **(costs | others))


def judged(*choices: Choice, crash: float = 0.0) -> Judgement:
    found = judge(choices, RATES, enough=0.999, crash=crash, trace="mine")
    assert found is not None
    return found


def test_the_product_of_costs_decides_and_not_one_of_them() -> None:
    balanced, thrifty, quick = choice("a", 10, 12, 3.0), choice("b", 5, 40, 9.0), choice("c", 20, 30, 2.5)
    found = judged(thrifty, balanced, quick)
    assert found.best is balanced and found.delivers
    assert found.front == (thrifty, balanced, quick)
    assert found.sentences[0].startswith("For mine take a: 12 B a second at a mean node, 3.0 hops (99 % within 9)")
    assert "Fewer connections: b has 50% less, for 3.3 times the bytes and 3.0 times the hops." in found.sentences
    assert "Shorter ways: c has 17% less, for 2.0 times the connections and 2.5 times the bytes." in found.sentences
    assert [
        found.kind(c) for c in (thrifty, balanced, choice("d", 9, 99, 9), choice("e", 9, 99, 9, needs="a centre"))
    ] == [
        *("front", "best", "beaten", "central"),
    ]
    assert not any(said.startswith("Fewer bytes") for said in found.sentences)  # nobody has fewer


def test_who_loses_events_is_not_taken_however_cheap() -> None:
    cheap, honest = choice("lossy", 1, 5, 1.0, delivered=0.9), choice("honest", 10, 10, 3.0)
    found = judged(cheap, honest)
    assert found.best is honest
    assert "lossy takes 50% less in bytes (44% less for what it delivers), but loses 10.0% of the deliveries." in (
        found.sentences
    )


def test_knowledge_of_the_whole_network_is_not_taken_for_granted() -> None:
    central, free = choice("gm", 3, 10, 2.0, needs="a centre"), choice("free", 10, 12, 3.0)
    found = judged(central, free)
    assert found.best is free
    assert any("gm would do with 3.0 connections" in said and "needs a centre" in said for said in found.sentences)
    alone = judged(central, choice("lossy", 10, 12, 3.0, delivered=0.5))
    assert alone.best is central
    assert "Nothing that delivers enough does without knowledge of the whole network." in alone.sentences


def test_where_nobody_delivers_enough_it_is_said() -> None:
    found = judged(choice("a", 1, 1, 1, delivered=0.8), choice("b", 9, 9, 9, delivered=0.95))
    assert found.best.system == "b" and not found.delivers and found.front == ()
    assert found.sentences[0].startswith("For mine nothing delivers 99.90%; b comes nearest")


def test_a_crash_is_told_and_who_bears_it_better() -> None:
    weak, hardy = (
        choice("weak", 5, 10, 3.0, delivered_in_crash=0.7),
        choice("hardy", 20, 30, 6.0, delivered_in_crash=0.99),
    )
    assert "While it mends after 20% of the nodes crashed at once, it delivers 70.0%; hardy delivers 99.0% then." in (
        judged(weak, hardy, crash=0.2).sentences
    )
    assert any(said.endswith("it delivers 99.0%, as much as any.") for said in judged(hardy, crash=0.2).sentences)


def test_what_was_assumed_stands_at_the_end_and_nothing_gives_no_judgement() -> None:
    assert (
        judged(choice("a", 1, 1, 1))
        .sentences[-1]
        .startswith(
            "Counted for 100 nodes and 50 topics, 24 events a day on a mean topic (assumed) and 1,000 bytes an event."
        )
    )
    assert judge([], RATES, enough=0.9, crash=0, trace="mine") is None


@pytest.mark.parametrize(("value", "shown"), [(0.5, "0.5 B"), (1_500.0, "1.5 kB"), (2.5e6, "2.5 MB")])
def test_bytes_have_a_unit(value: float, shown: str) -> None:
    assert f"{shown} a second" in judged(choice("a", 1, value, 1)).sentences[0]


COSTS = st.tuples(*[st.integers(1, 6)] * 3)


@given(st.lists(COSTS, min_size=1, max_size=12))
def test_the_front_is_what_nothing_beats(costs: list[tuple[int, int, int]]) -> None:
    choices = [choice(f"s{i}", *each) for i, each in enumerate(costs)]
    kept = {(c.connections, c.bytes_a_second, c.hops) for c in front(choices)}
    for mine in costs:
        beaten = any(other != mine and all(a <= b for a, b in zip(other, mine, strict=True)) for other in costs)
        assert (mine in kept) != beaten
    assert len(kept) == len(front(choices))  # of equals one
    found = judged(*choices)
    assert (found.best.connections, found.best.bytes_a_second, found.best.hops) in kept
    products = [c.connections * c.bytes_a_second * c.hops for c in front(choices)]
    assert found.best.connections * found.best.bytes_a_second * found.best.hops == min(products)
