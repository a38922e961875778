"""The pieces of HTML: whatever comes from outside stays text."""

from __future__ import annotations

import base64
import hashlib
import json

import pytest

from grapevine.report.markup import Cell, data_block, definition_list, link, policy, sortable_table
from tests.report.experiments import HOSTILE
from tests.report.test_page import Document


def test_a_table_shows_cells_and_says_what_they_are_sorted_by() -> None:
    rows = [[Cell.of("vitis"), Cell.of("9.04%", 0.0904)], [Cell.of("rvr"), Cell("–")]]
    document = Document(sortable_table("Values", ["system", "overhead"], rows, numeric={1}))
    assert document.texts("button") == ["system", "overhead"]
    assert document.texts("td") == ["9.04%", "–"]
    assert document.attributes("data-by") == ["vitis", "0.0904", "rvr"], "what is not there is sorted by nothing"
    assert document.attributes("class").count("number") == 1 + 2
    assert [text for text in document.texts("span") if text] == ["Values."], "the caption"
    assert document.attributes("scope") == ["col", "col", "row", "row"]


def test_no_text_becomes_markup() -> None:
    made = [
        sortable_table(HOSTILE, [HOSTILE], [[Cell.of(HOSTILE)]], numeric=set()),
        definition_list([(HOSTILE, HOSTILE)]),
        link(f'"{HOSTILE}', HOSTILE),
        data_block("x", {"title": HOSTILE}).removesuffix("</script>").removeprefix("<script"),
    ]
    assert not any("<script" in part for part in made)


def test_data_comes_back_as_it_went_in() -> None:
    content = {"text": f"{HOSTILE}\u2028", "number": 0.5}
    block = data_block("chart-1", content)
    assert json.loads(block[block.index(">") + 1 : block.rindex("</script>")]) == content
    with pytest.raises(ValueError, match="not JSON compliant"):
        data_block("chart-1", float("nan"))


def test_what_is_not_known_is_left_out_of_a_list_of_facts() -> None:
    assert Document(definition_list([("Systems", "vitis"), ("CPU time", "")])).texts("dt") == ["Systems"]


def test_only_the_scripts_of_the_page_may_run() -> None:
    script = "let a = 1;"
    digest = base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()
    assert f"script-src 'sha256-{digest}';" in policy([script])
    assert "default-src 'none'" in policy([])
