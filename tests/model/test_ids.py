import hashlib

from hypothesis import given
from hypothesis import strategies as st

from grapevine.model.ids import RING_SIZE, clockwise, distance, ring_id, ring_ids

ids = st.integers(0, RING_SIZE - 1)


def test_a_ring_id_is_the_first_64_bits_of_sha1() -> None:
    assert ring_id("abc") == 0xA9993E364706816A  # FIPS 180's example digest starts so
    assert ring_id("abc") == int(hashlib.sha1(b"abc").hexdigest()[:16], 16)


def test_a_user_has_different_ids_as_node_and_as_topic() -> None:
    assert ring_ids("node", ["7"])[0] != ring_ids("topic", ["7"])[0]


@given(st.lists(st.text(max_size=5)))
def test_ids_of_many_names_are_those_of_each_with_its_kind(names: list[str]) -> None:
    assert ring_ids("node", names).tolist() == [ring_id(f"node:{name}") for name in names]


@given(ids, ids)
def test_distance_is_symmetric_and_at_most_half_the_ring(a: int, b: int) -> None:
    assert distance(a, b) == distance(b, a) <= RING_SIZE // 2
    assert (distance(a, b) == 0) == (a == b)


@given(ids, ids, ids)
def test_distance_keeps_the_triangle_inequality(a: int, b: int, c: int) -> None:
    assert distance(a, c) <= distance(a, b) + distance(b, c)


@given(ids, ids)
def test_walking_clockwise_arrives(a: int, b: int) -> None:
    assert (a + clockwise(a, b)) % RING_SIZE == b
