"""The picture of one topic's part of an overlay."""

from __future__ import annotations

import re
from typing import Any

from grapevine.report.drawing import MOST_LINKS, SIZE, draw_topic, role_swatch
from tests.report.experiments import HOSTILE

Row = dict[str, Any]


def node(number: int, role: str = "subscriber", cluster: int | None = 0, position: float = 0.0) -> Row:
    return {"topic": 0, "node": number, "role": role, "cluster": cluster, "position": position}


def link(source: int, target: int, kind: str = "cluster") -> Row:
    return {"topic": 0, "source": source, "target": target, "kind": kind}


NODES = [
    *(node(i, cluster=0, position=i / 8) for i in range(3)),
    *(node(i, cluster=1, position=i / 8) for i in (3, 4)),
    *(node(5, "gateway", 0, 0.7), node(6, "rendezvous", None, 0.9)),
]


def test_a_drawing_is_told_in_words() -> None:
    made = draw_topic(NODES, [link(0, 1), link(3, 4), link(5, 6, "path")], "vitis")
    assert made.description == "6 subscribers in 2 clusters; 1 gateway and the rendezvous"
    assert f'aria-label="vitis: {made.description}"' in made.svg
    assert [text for _, text in made.clusters] == ["cluster 1: 4", "cluster 2: 2"]


def test_every_node_and_link_is_drawn_on_the_canvas() -> None:
    svg = draw_topic(NODES, [link(0, 1), link(3, 4), link(5, 6, "path")], "vitis").svg
    assert svg.count("<title>") == len(NODES)
    assert svg.count('fill="none" stroke="var(--') == 1 + 3, "the ring and the links"
    places = [float(x) for pair in re.findall(r"translate\(([\d.]+) ([\d.]+)\)", svg) for x in pair]
    assert all(0 < place < SIZE for place in places)


def test_the_first_place_is_at_the_top() -> None:
    assert f"translate({SIZE / 2:.1f} 30.0)" in draw_topic([node(0)], [], "x").svg


def test_a_link_to_a_node_that_is_not_drawn_is_left_out() -> None:
    assert '<path d="M' not in draw_topic([], [link(0, 99)], "x").svg


def test_paths_are_kept_when_there_are_too_many_links() -> None:
    many = [link(0, 1)] * (2 * MOST_LINKS) + [link(0, 2, "path")] * 3
    made = draw_topic(NODES, many, "opt")
    assert made.description.endswith(f"({MOST_LINKS:,} of {2 * MOST_LINKS + 3:,} links drawn)")
    assert made.svg.count('stroke-width="2.4"') == 3


def test_subscribers_without_a_link_are_no_clusters() -> None:
    made = draw_topic([node(0, cluster=0), node(1, cluster=1)], [], "x")
    assert made.description == "2 subscribers, none linked to another"
    assert made.clusters == [("var(--muted)", "2 on their own")]


def test_one_on_its_own_is_a_cluster_like_others_where_there_are_few() -> None:
    nodes = [*(node(i, cluster=0) for i in range(3)), node(3, cluster=1)]
    assert [text for _, text in draw_topic(nodes, [], "x").clusters] == ["cluster 1: 3", "cluster 2: 1"]
    scattered = [*nodes, *(node(i, cluster=i) for i in range(4, 8))]
    assert [text for _, text in draw_topic(scattered, [], "x").clusters] == ["cluster 1: 3", "5 on their own"]


def test_clusters_have_the_colours_of_the_palette_in_its_order() -> None:
    made = draw_topic(NODES, [], "x", ["var(--b)", "var(--a)", "var(--c)"])
    assert [colour for colour, _ in made.clusters] == ["var(--b)", "var(--a)"]


def test_a_name_is_text() -> None:
    assert HOSTILE not in draw_topic(NODES, [], HOSTILE).svg


def test_every_role_has_a_picture_of_its_own() -> None:
    roles = "subscriber", "gateway", "relay", "rendezvous", "cluster", "path"
    assert len({role_swatch(role) for role in roles}) == len(roles)
