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
    assert first == ["system", "workload", "size", "overhead", "delay, p95, ms", "seeds"]
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
    expected = ["system", "workload", "size", "seed", "status", "global knowledge", "hit ratio"]
    expected += ["wall time", "CPU time", "run"]
    assert document.texts("button") == expected, "what no run has is no column"
    assert document.attributes("href") == ["../out/simulations/run_id=aaaaaaaaaaaaaaaa/"], "who failed has no folder"
    assert "90.00%" in document.texts("td") and "1 min 23 s" in document.texts("td")
    assert document.texts("b") == ["failed"]


def test_what_delivery_costs_stands_beside_overhead_and_degrees_at_the_end() -> None:
    costs = ["degree_max", "degree", "bytes_per_event", "notifications_per_event", "overhead", "hit_ratio"]
    metrics = [{"run_id": "a" * 16, "metric": name, "value": 12_000.0} for name in costs]
    document = Document(runs_table([run_row("a" * 16, "vitis", "high", {}, 1)], metrics, [], LOOKS, "."))
    first = ["hit ratio", "overhead", "notifications per event", "bytes per event, kB", "degree", "degree, max"]
    headings = document.texts("button")
    assert headings[headings.index("hit ratio") :][: len(first)] == first
    cells = dict(zip(headings[1:], document.texts("td"), strict=True))
    assert (cells["bytes per event, kB"], cells["degree, max"]) == ("12", "12,000")


def test_who_knows_the_whole_network_is_told_with_what_it_knows() -> None:
    runs = [run_row(name[0] * 16, name, "high", {}, 1) for name in ("gm", "vitis", "of another version")]
    document = Document(runs_table(runs, [], [], Looks(["gm", "vitis", "of another version"], ["high"]), "."))
    column = document.texts("button").index("global knowledge") - 1
    width = len(document.texts("button")) - 1
    assert document.texts("td")[column::width] == ["yes", "no", "–"]
    assert document.texts("dt") == ["gm"]
    assert document.texts("dd")[0].startswith("needs a centre that knows everybody's subscriptions")
