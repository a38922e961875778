"""Algorithm 5 for many topics at once is Algorithm 5 for each."""

from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from grapevine.model.ids import distance
from grapevine.systems.vitis.peer.gateways import Chosen, NeighbourProposals, choose_gateways

Row = tuple[int, int, int, int]  # neighbour, gateway, parent, hops
REACH, ME = 5, 7
WORDS = st.integers(0, 2**64 - 1)
GATEWAYS = st.sampled_from([100, 101, 102])
IDS = {100: 5, 101: 2**40, 102: 2**63 + 1}  # of gateways
PROPOSALS = st.lists(
    st.tuples(st.sampled_from(range(20, 26)), GATEWAYS, st.sampled_from([ME, 20, 21, 22, 90]), st.integers(0, 6)),
    unique_by=lambda proposal: proposal[0],
    max_size=6,
)


def naive(key: int, proposals: list[Row], my_id: int) -> tuple[int, int]:
    """The distance of the gateway from the topic's id, and the hops to it."""
    neighbours = {neighbour for neighbour, *_ in proposals}
    best = distance(my_id, key), 0
    for neighbour, gateway, parent, hops in proposals:
        if parent != ME and (parent == neighbour or parent not in neighbours) and hops + 1 < REACH:
            best = min(best, (distance(IDS[gateway], key), hops + 1))
    return best


@given(st.lists(st.tuples(WORDS, PROPOSALS), min_size=1, max_size=5), WORDS)
def test_every_topic_gets_what_the_algorithm_says(
    topics: list[tuple[int, list[tuple[int, int, int, int]]]], my_id: int
) -> None:
    rows = [row for _, proposals in topics for row in proposals]
    starts = np.cumsum([0, *(len(proposals) for _, proposals in topics)]).astype(np.int64)
    nodes, gateways, parents = (np.array([row[i] for row in rows], np.uint64) for i in range(3))
    proposed = NeighbourProposals(
        *(starts, nodes, nodes, gateways, np.array([IDS[row[1]] for row in rows], np.uint64), parents),
        np.array([row[3] for row in rows], np.int32),
    )
    keys = np.array([key for key, _ in topics], np.uint64)
    count = len(topics)
    gateways, gateway_ids, chosen_parents = (np.empty(count, np.uint64) for _ in range(3))
    out = Chosen(gateways, gateway_ids, chosen_parents, np.empty(count, np.int32))
    choose_gateways(REACH, np.uint64(ME), np.uint64(my_id), keys, keys, proposed, out)
    for i, (key, proposals) in enumerate(topics):
        assert (distance(int(out.gateway_ids[i]), key), int(out.hops[i])) == naive(key, proposals, my_id)
        assert (out.gateways[i] == ME) == (out.parents[i] == ME) == (out.hops[i] == 0)
