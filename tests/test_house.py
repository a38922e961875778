"""What `bench.house` counts, on a package of a few lines."""

from __future__ import annotations

from pathlib import Path

import pytest
from bench.house import Source, beyond

FILES = {
    "blocks/__init__.py": "",
    "blocks/ring.py": "",
    "blocks/trees.py": "from grapevine.blocks import ring\n",
    "blocks/views.py": "",
    "systems/__init__.py": "",
    "systems/contracts/__init__.py": "from grapevine.blocks.views import View\n",
    "systems/scribe/__init__.py": "",
    "systems/scribe/peer.py": "from grapevine.blocks.trees import Tree\nfrom grapevine.systems import contracts\n",
    "systems/vitis.py": "from grapevine.blocks import views\n\n\ndef f(a, /, b, *c, d, **e):\n    hit_ratio = 1\n",
    "sim/rounds.py": "class A:\n    def go(self, a):\n        pass\n",
}


@pytest.fixture
def source(tmp_path: Path) -> Source:
    for name, text in FILES.items():
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(text, encoding="utf-8")
    return Source(tmp_path)


def test_a_block_that_only_one_system_reaches_is_named(source: Source) -> None:
    assert source.blocks_of_one_system() == [("blocks.ring", "systems.scribe"), ("blocks.trees", "systems.scribe")]


def test_all_parameters_count_but_self(source: Source) -> None:
    assert {one.name: one.value for one in source.arguments()} == {"systems.vitis:4 f": 5, "sim.rounds:2 go": 1}


def test_what_is_beyond_a_limit_comes_largest_first(source: Source) -> None:
    assert [one.name for one in beyond(source.file_lengths(), 1)] == [
        "systems.vitis",
        "sim.rounds",
        "systems.scribe.peer",
    ]


def test_imports_and_words_are_counted_by_module(source: Source) -> None:
    assert max(source.fan_out(), key=lambda one: one.value).name == "systems.scribe.peer"
    assert source.files_that_name("hit_ratio") == ["systems.vitis"]
