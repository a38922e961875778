"""The section of a page that draws one topic for each system."""

from __future__ import annotations

from pathlib import Path

from grapevine.model import tables
from grapevine.model.store import read_table
from grapevine.report.looks import COLOURS, Looks
from grapevine.report.overlay import ROLES, overlay_section
from tests.report.experiments import run_row
from tests.report.test_page import Document

LOOKS = Looks(["vitis", "rvr"], ["low"])


def test_each_system_is_drawn_once_in_the_order_of_the_experiment(experiment: Path) -> None:
    runs = [run_row("b" * 16, "rvr", "low", {"size": 5}, 1), run_row("a" * 16, "vitis", "low", {"size": 5}, 1)]
    document = Document(overlay_section(experiment, [*runs, runs[0] | {"seed": 2}], LOOKS))
    assert document.texts("h3") == ["vitis", "rvr"]
    said = [text for text in document.texts("p")[1:] if not text.startswith("Download")]
    assert len(said) == 2 and all(text.startswith("on low, size 5, seed 1, topic ") for text in said)


def test_a_drawing_can_be_taken_away_with_its_links(experiment: Path) -> None:
    section = overlay_section(experiment, [run_row("a" * 16, "vitis", "low", {"size": 5}, 1)], LOOKS)
    (saved,) = Document(section).saved()
    path = experiment / "simulations" / f"run_id={'a' * 16}"
    header, *lines = saved["csv"].splitlines()
    assert header == "topic,source,target,kind"
    assert len(lines) == read_table(path, tables.DRAWN_LINKS).num_rows
    assert saved["name"].startswith("vitis-on-low-size-5-seed-1-topic-")


def test_clusters_have_other_colours_than_systems(experiment: Path) -> None:
    section = overlay_section(experiment, [run_row("a" * 16, "vitis", "low", {}, 1)], LOOKS)
    assert LOOKS.spare_colours[0] in section
    assert not any(colour in section for colour in COLOURS[:2])


def test_the_legend_explains_the_roles_that_occur_and_no_others(experiment: Path) -> None:
    section = overlay_section(experiment, [run_row("b" * 16, "rvr", "low", {}, 1)], LOOKS)
    path = experiment / "simulations" / f"run_id={'b' * 16}"
    roles = {row["role"] for row in read_table(path, tables.DRAWN_NODES).to_pylist()}
    for role in ("subscriber", "gateway", "relay", "rendezvous", "publisher"):
        assert (ROLES[role] in section) == (role in roles), role


def test_runs_without_a_folder_are_not_drawn(experiment: Path) -> None:
    assert overlay_section(experiment, [run_row("f" * 16, "vitis", "low", {}, 1, error="broke")], LOOKS) == ""
