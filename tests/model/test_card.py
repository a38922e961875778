"""What things say of themselves in notebooks: facts in groups, and nothing that a browser takes for markup."""

from __future__ import annotations

from xml.etree import ElementTree

from hypothesis import given
from hypothesis import strategies as st

from grapevine.model.card import card, counted

anything = st.text(st.characters(codec="utf-8", exclude_categories=("Cc", "Cs")), min_size=1)  # what XML can hold


@given(title=anything, about=anything, group=anything, fact=anything, value=anything)
def test_every_text_comes_out_as_it_went_in(title: str, about: str, group: str, fact: str, value: str) -> None:
    html = ElementTree.fromstring(card(title, about, {group: [(fact, value)], "empty": []}))
    assert [part.text for part in html.iter() if part.text] == [title, about, group, fact, value]
    assert {part.tag for part in html.iter()} <= {"div", "b", "table", "tr", "th", "td"}


def test_things_are_counted_in_words() -> None:
    assert [counted(count, "node") for count in (0, 1, 2_000)] == ["0 nodes", "1 node", "2,000 nodes"]
    assert counted(2, "body", "bodies") == "2 bodies"
