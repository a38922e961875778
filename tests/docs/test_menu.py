"""The site: its menu (zensical.toml) names every page, and `make docs` installs a generator that the extra allows."""

from __future__ import annotations

import re
import tomllib

from packaging.requirements import Requirement

from tests.docs.markdown import DOCS, TREE


def paths_of(entries: list[object]) -> list[str]:
    """The pages of a menu and its parts: an entry is a path, or a title with a path or with further entries."""
    found: list[str] = []
    for entry in entries:
        (inner,) = entry.values() if isinstance(entry, dict) else (entry,)
        found += paths_of(inner) if isinstance(inner, list) else [str(inner)]
    return found


def test_every_page_is_in_the_menu_once() -> None:
    """A page that no menu names would be found by searching alone."""
    listed = paths_of(tomllib.loads((TREE / "zensical.toml").read_text())["project"]["nav"])
    assert sorted(listed) == sorted(str(page.relative_to(DOCS)) for page in DOCS.rglob("*.md"))


def test_paths_are_found_at_any_depth() -> None:
    menu: list[object] = ["a.md", {"B": "b.md"}, {"C": ["c.md", {"D": [{"E": "e.md"}]}]}]
    assert paths_of(menu) == ["a.md", "b.md", "c.md", "e.md"]


def test_the_pinned_generator_is_one_that_the_extra_allows() -> None:
    pin = re.search(r"^SITE_PIN := (\S+)==(\S+)$", (TREE / "Makefile").read_text(), re.MULTILINE)
    assert pin is not None
    project = tomllib.loads((TREE / "pyproject.toml").read_text())["project"]
    (wanted,) = map(Requirement, project["optional-dependencies"]["docs"])
    assert wanted.name == pin[1] and wanted.specifier.contains(pin[2])
