"""The tables of a page."""

from __future__ import annotations

from grapevine.report.looks import Looks
from grapevine.report.values import runs_table, series_tables
from tests.report.experiments import mean_row, run_row
from tests.report.test_page import Document

LOOKS = Looks(["vitis", "rvr"], ["high"])
SERIES = [
    mean_row("rvr", "high", {}, "overhead", 0.6),
    mean_row("vitis", "high", {"size": 5}, "overhead", 0.1, 0.01),
    mean_row("vitis", "high", {"size": 5}, "delay_ms_p95", 12.5),
    mean_row("vitis", "high", {"size": 5}, "of_another_version", 7.0),
]


def test_measures_are_headed_and_written_as_the_catalogue_says() -> None:
    document = Document(series_tables(SERIES, ["delay_ms_p95"], LOOKS))
    headings = document.texts("button")
    first = headings[: headings.index("seeds") + 1]
    assert first == ["system", "workload", "size", "delay, p95, ms", "overhead", "seeds"]
    assert "of another version" in headings[len(first) :], "the second table has everything"
    cells = document.texts("td")
    assert "10.00% ± 1.00%" in cells and "12.5" in cells and "60.00%" in cells


def test_systems_stand_in_the_order_of_the_experiment() -> None:
    document = Document(series_tables(SERIES, [], LOOKS))
    assert document.texts("th")[-2:] == ["vitis", "rvr"]


def test_without_series_there_is_no_table() -> None:
    assert series_tables([], [], LOOKS) == ""
    assert runs_table([], [], [], LOOKS, ".") == ""


def test_every_run_has_its_values_and_leads_to_its_folder() -> None:
    runs = [run_row("a" * 16, "vitis", "high", {"size": 5}, 2), run_row("b" * 16, "rvr", "high", {}, 1, error="broke")]
    metrics = [{"run_id": "a" * 16, "metric": "hit_ratio", "value": 0.9}]
    document = Document(runs_table(runs, metrics, ["hit_ratio", "hops"], LOOKS, "../out"))
    expected = ["run", "system", "workload", "size", "seed", "status", "hit ratio", "wall time", "CPU time"]
    assert document.texts("button") == expected, "what no run has is no column"
    assert document.attributes("href") == ["../out/simulations/run_id=aaaaaaaaaaaaaaaa/"], "who failed has no folder"
    assert "90.00%" in document.texts("td") and "1 min 23 s" in document.texts("td")
    assert document.texts("b") == ["failed"]
