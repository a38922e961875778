"""Rules that peers call give the same results as machine code and as plain Python, to the last bit."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from grapevine.kernels.jit import COMPILES
from grapevine.systems.vitis.peer.gateways import Chosen, NeighbourProposals
from tests.kernels.plain_rules import Plain, call, plain_rules

pytestmark = pytest.mark.skipif(not COMPILES, reason="numba is not installed: there is no machine code to compare with")
often = settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.too_slow])

# Ids at the ends of the ring and in its middle are where arithmetic wraps.
EDGES = [0, 1, 2**31, 2**32, 2**53 + 1, 2**63 - 1, 2**63, 2**63 + 1, 2**64 - 2, 2**64 - 1]
words = st.one_of(st.sampled_from(EDGES), st.integers(0, 2**64 - 1))
numbers = st.integers(0, 2**63 - 1)


@pytest.fixture(scope="module")
def plain() -> Iterator[Plain]:
    with plain_rules() as process:
        yield process


def assert_alike(plain: Plain, name: str, *arguments: Any) -> Any:
    """Both ways return the same, and leave the same in the arguments; returns it."""
    answer, left = call(name, arguments)
    plain_answer, plain_left = plain.call(name, arguments)
    for compiled, plainly in zip(_flat((answer, left)), _flat((plain_answer, plain_left)), strict=True):
        np.testing.assert_array_equal(compiled, plainly, err_msg=name)
    return answer


def _flat(value: Any) -> Iterator[Any]:
    if isinstance(value, Sequence):
        for part in value:
            yield from _flat(part)
    else:
        yield value


def uint64s(values: list[int]) -> np.ndarray[Any, np.dtype[np.uint64]]:
    return np.array(values, np.uint64)


@often
@given(words, words, words, words, st.integers(1, 2**32 - 1))
def test_draws(plain: Plain, seed: int, purpose: int, node: int, salt: int, bound: int) -> None:
    bits = assert_alike(plain, "grapevine.kernels.rng:draw", *uint64s([seed, purpose, node, salt]))
    for name in ("below", "unit", "mix"):
        assert_alike(plain, f"grapevine.kernels.rng:{name}", np.uint64(bits), *[bound] * (name == "below"))
    assert_alike(plain, "grapevine.kernels.rng:draw", seed >> 1, purpose >> 1, node >> 1, salt >> 1)
    assert_alike(plain, "grapevine.systems.vitis.rules:tie_state", seed >> 1, np.uint64(node), salt % 2 == 0)


@often
@given(words, words)
def test_ways_round_the_ring(plain: Plain, a: int, b: int) -> None:
    for name in ("clockwise", "ring_distance"):
        assert_alike(plain, f"grapevine.kernels.ring:{name}", np.uint64(a), np.uint64(b))


@often
@given(st.sets(words, max_size=30), st.sets(words, max_size=30))
def test_common_topics(plain: Plain, a: set[int], b: set[int]) -> None:
    for name in ("common", "common_positions"):
        assert_alike(plain, f"grapevine.kernels.overlap:{name}", uint64s(sorted(a)), uint64s(sorted(b)))


@st.composite
def overlays(draw: st.DrawFn) -> dict[str, Any]:
    """What a node knows of others, as its book wants it: addresses, who has settled, common weights, and parameters."""
    nodes = draw(st.lists(words.filter(bool), min_size=1, max_size=40, unique=True))
    return {
        "me": draw(words.filter(lambda me: me not in nodes)),
        "seed": draw(numbers),
        "nodes": nodes,
        "up_s": draw(st.lists(st.sampled_from([0.0, 100.0]), min_size=len(nodes), max_size=len(nodes))),
        "weights": [draw(st.tuples(st.integers(0, 2**40), st.integers(2**40, 2**41))) for _ in range(8)],
        "near": draw(st.integers(0, 8)),
        "keys": draw(st.lists(words, min_size=1, max_size=5)),
        "size": draw(st.integers(4, 15)),
        "structured": draw(st.integers(2, 4)),
        "backups": draw(st.integers(0, 4)),
    }


def select_and_route(world: dict[str, Any]) -> tuple[Any, ...]:
    """Algorithm 4 and greedy lookups in this world, by the peer's own way to the rules."""
    from grapevine.systems.vitis.peer.book import VitisBook
    from grapevine.systems.vitis.peer.config import VitisPeerConfig
    from grapevine.systems.vitis.peer.messages import Descriptor

    nodes, weights = world["nodes"], world["weights"]
    book = VitisBook(Descriptor(world["me"], world["me"], 1, 1, 50.0, 0.0), world["seed"])
    about = zip(nodes, world["up_s"], strict=True)
    book.learn(0.0, [Descriptor(node, node, 1, 1, up_s, 1.0) for node, up_s in about])
    config = VitisPeerConfig(
        table_size=world["size"], ring_and_long_links=world["structured"], ring_backups=world["backups"]
    )
    table, kept = book.select(0.0, config, 10.0, nodes, nodes[: world["near"]], lambda node: weights[node % 8])
    hops = book.next_hops(0.0, 10.0, uint64s(world["keys"]), nodes[:15])
    return table, kept, [node for node, _ in hops], [at for _, at in hops]


@often
@given(overlays())
def test_neighbours_and_routes_of_a_vitis_peer(plain: Plain, world: dict[str, Any]) -> None:
    assert_alike(plain, "tests.kernels.test_plain:select_and_route", world)


@st.composite
def proposals(draw: st.DrawFn) -> NeighbourProposals:
    """What a few neighbours propose for a few topics; gateways are among a few nodes, so that they tie."""
    nodes = draw(st.lists(words, min_size=6, max_size=6, unique=True))
    counts = draw(st.lists(st.integers(0, 4), min_size=1, max_size=4))
    total = sum(counts)
    picked = [draw(st.lists(st.integers(0, 5), min_size=total, max_size=total)) for _ in range(2)]
    hops = draw(st.lists(st.integers(0, 6), min_size=total, max_size=total))
    ids = [word ^ 2**63 for word in nodes]
    neighbours = [at for count in counts for at in range(count)]  # each proposes once for a topic
    return NeighbourProposals(
        starts=np.cumsum([0, *counts]).astype(np.int64),
        nodes=uint64s([nodes[i] for i in neighbours]),
        ids=uint64s([ids[i] for i in neighbours]),
        gateways=uint64s([nodes[i] for i in picked[0]]),
        gateway_ids=uint64s([ids[i] for i in picked[0]]),
        parents=uint64s([nodes[i] for i in picked[1]]),
        hops=np.array(hops, np.int32),
    )


@often
@given(proposals(), st.integers(1, 6), words, words, st.data())
def test_gateways(
    plain: Plain, proposed: NeighbourProposals, reach: int, me: int, my_id: int, data: st.DataObject
) -> None:
    count = len(proposed.starts) - 1
    topics, keys = (uint64s(data.draw(st.lists(words, min_size=count, max_size=count))) for _ in range(2))
    none = uint64s([0] * count)
    out = Chosen(none, none.copy(), none.copy(), np.zeros(count, np.int32))
    rule = "grapevine.systems.vitis.peer.gateways:choose_gateways"
    assert_alike(plain, rule, reach, np.uint64(me), np.uint64(my_id), topics, keys, proposed, out)


lengths = st.floats(0, 1_000, allow_subnormal=False)


@often
@given(st.integers(2, 5), st.booleans(), st.integers(0, 12), st.data())
def test_coordinates_of_a_rappel_peer(
    plain: Plain, dimensions: int, heights: bool, count: int, data: st.DataObject
) -> None:
    size = dimensions + heights

    def floats(number: int) -> np.ndarray[Any, np.dtype[np.float64]]:
        return np.array(data.draw(st.lists(lengths, min_size=number, max_size=number)), np.float64)

    position, others, errors, measured = floats(size), floats(count * size), floats(count), floats(count)
    others = others.reshape(count, size)
    assert_alike(plain, "grapevine.kernels.coords:settle", position, others, errors, measured, 40, heights)
    if count:
        assert_alike(plain, "grapevine.kernels.coords:pull", position, 0.5, others[0], errors[0], measured[0], heights)
