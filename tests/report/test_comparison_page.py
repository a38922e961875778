"""The page of a comparison, from rows alone."""

from __future__ import annotations

import json
import re
from html import unescape
from typing import Any

from grapevine.report.comparison_page import front_picture, make_comparison_page


def choice(name: str, kind: str, connections: float, bytes_a_second: float, hops: float) -> dict[str, Any]:
    costs = {"connections": connections, "connections_max": connections + 3, "bytes_a_second": bytes_a_second}
    shares = {"delivered": 1.0, "delivered_in_crash": None, "overhead": 0.25, "busiest": 1_234.5}
    about = {"name": name, "system": name.split()[0], "kind": kind, "needs": ""}
    return about | costs | shares | {"hops": hops, "hops_p99": 2 * hops}


ROWS = [choice("vitis with 15 links", "best", 15.2, 26.0, 4.2), choice("gm", "central", 4.5, 12.0, 7.5)]


def test_the_front_can_be_downloaded_with_all_costs_and_its_legend() -> None:
    page = make_comparison_page("Which <overlay>?", ["Take vitis.", "It costs 26 B."], ROWS, "runs/report.html")
    assert page.count('data-of="front-figure"') == 1
    found = re.search(r'<script[^>]*id="front-figure"[^>]*>(.*?)</script>', page, flags=re.DOTALL)
    assert found is not None
    saved = json.loads(unescape(found[1]))
    assert saved["name"] == "bytes-and-hops-by-connections"
    header, *lines = saved["csv"].splitlines()
    assert header.split(",")[:2] == ["name", "system"]
    assert [line.split(",")[0] for line in lines] == [row["name"] for row in ROWS]
    assert set(saved["legend"]) >= {"recommended", "needs knowledge of the whole network"}
    assert "<h3>Bytes and hops by connections</h3>" in page, "a picture that is saved has this title"


def test_nothing_that_is_given_becomes_markup() -> None:
    page = make_comparison_page("<b>title</b>", ["<i>said</i>"], ROWS, "runs/report.html")
    assert "<b>title</b>" not in page and "<i>said</i>" not in page


def test_the_picture_has_the_colours_of_paper() -> None:
    picture = front_picture(ROWS, "svg").decode()
    assert "var(--" not in picture and "vitis 15" in picture
    assert front_picture(ROWS, "png").startswith(b"\x89PNG")
