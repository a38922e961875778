import json
import re
from html.parser import HTMLParser
from pathlib import Path
from typing import Any
from urllib.parse import unquote
from xml.etree import ElementTree

import pytest
import typer
from typer.testing import CliRunner

from grapevine.cli.report import report
from grapevine.model.errors import UsageError
from grapevine.model.manifest import Manifest
from grapevine.report.document import chart_library
from grapevine.report.page import write_page
from tests.report.experiments import HOSTILE, PLOTS, mean_row, run_row, write_experiment

VOID = {"meta", "link", "br", "img", "input", "hr"}


class Document(HTMLParser):
    """Elements with their attributes and direct text; fails on tags that do not match."""

    def __init__(self, source: str) -> None:
        super().__init__(convert_charrefs=True)
        self.elements: list[tuple[str, dict[str, str | None], list[str]]] = []
        self._open: list[tuple[str, list[str]]] = []
        self.feed(source)
        self.close()
        assert not self._open

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.elements.append((tag, dict(attrs), []))
        if tag not in VOID:
            self._open.append((tag, self.elements[-1][2]))

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.elements.append((tag, dict(attrs), []))

    def handle_endtag(self, tag: str) -> None:
        assert self._open.pop()[0] == tag

    def handle_data(self, data: str) -> None:
        if self._open:
            self._open[-1][1].append(data)

    def texts(self, tag: str) -> list[str]:
        return ["".join(content) for name, _, content in self.elements if name == tag]

    def attributes(self, name: str) -> list[str]:
        return [value for _, found, _ in self.elements if (value := found.get(name)) is not None]

    def specs(self) -> list[dict[str, Any]]:
        """What charts are drawn from."""
        return [content for content in self._data() if "layer" in content]

    def saved(self) -> list[dict[str, Any]]:
        """What figures are saved as."""
        return [content for content in self._data() if "csv" in content]

    def _data(self) -> list[dict[str, Any]]:
        blocks = [element for element in self.elements if element[1].get("type") == "application/json"]
        return [json.loads("".join(content)) for _, _, content in blocks]


@pytest.fixture(scope="module")
def source(page: Path) -> str:
    return page.read_text("utf-8")


@pytest.fixture(scope="module")
def document(source: str) -> Document:
    return Document(source)


def test_every_plot_is_there_and_the_empty_one_says_so(document: Document) -> None:
    headings = document.texts("h3")
    for plot in PLOTS:
        assert plot.get("title", "Hops") in headings
    said = " ".join(document.texts("p"))
    assert "No finished run has these values." in said
    assert "one line per system and workload: the mean over 2 seeds and its 95% confidence interval" in said
    assert "One panel per workload." in said, "13 lines in one chart are too many"
    assert "At routing table size 5, vitis · low is best (3.846%), opt worst (50%); " in said
    specs = document.specs()
    assert len(specs) == len([found for found in document.attributes("class") if found == "chart"])
    assert all({"layer", "datasets", "description"} <= set(spec) for spec in specs)


def test_a_series_takes_x_from_its_parameters_and_a_baseline_is_a_level(document: Document) -> None:
    spec = document.specs()[0]
    points, (level,) = spec["datasets"]["points"], spec["datasets"]["levels"]
    assert {point["x"] for point in points} == {5, 10, 20}
    assert len({point["line"] for point in points}) == 4
    assert level["line"] == "opt · low"
    assert {point["shown"] for point in points} >= {"3.85% ± 1.00%"}
    marks = [layer["mark"]["type"] for layer in spec["layer"] if "name" not in layer]
    assert marks == ["rect", "rule", "area", "line", "point", "rule", "text", "point", "text"]
    assert [layer["name"] for layer in spec["layer"] if "name" in layer] == ["label strokes", "label names"]


def test_claimed_values_are_drawn_and_named(document: Document) -> None:
    datasets = document.specs()[0]["datasets"]
    assert [(claim["x"], claim["y"], claim["number"]) for claim in datasets["claims"]] == [(10, 0.09, "1")]
    assert [(claim["y"], claim["number"]) for claim in datasets["claimed levels"]] == [(0.5, "2")]
    entries = document.texts("li")
    assert "paper, high correlation: 9% at 10" in entries
    assert "paper, anywhere: 50%" in entries


def test_a_look_belongs_to_its_series_in_every_figure(document: Document) -> None:
    looks: dict[str, set[str]] = {}
    for spec in document.specs()[:2]:
        for layer in spec["layer"]:
            scale = layer["encoding"].get("shape", {}).get("scale")
            for label, shape in zip(scale["domain"], scale["range"], strict=True) if scale else ():
                looks.setdefault(label, set()).add(shape)
    assert len(looks) == 5
    assert all(len(shapes) == 1 for shapes in looks.values())


def test_distributions_are_bars_and_progress_keeps_every_round(document: Document) -> None:
    by_title = {spec["description"].split(":")[0]: spec["datasets"] for spec in document.specs()}
    bars = by_title["Spread of overhead, low"]["bars"]
    overhead = [bar for bar in bars if bar["line"] == "vitis · table size 5"]
    assert [(bar["x"], bar["x2"], bar["at"], bar["shown"]) for bar in overhead][:3] == [
        (0, 0.1, "0% to 10%", "25.00%"),
        (0.1, 0.2, "10% to 20%", "25.00%"),
        (0.4, 0.5, "40% to 50%", "25.00%"),
    ]
    degrees = [bar for bar in by_title["Spread of degrees, low"]["bars"] if bar["line"] == "vitis · table size 5"]
    assert [bar["at"] for bar in degrees] == ["3", "9"]
    rounds = [point["x"] for point in by_title["Hit ratio under churn, low"]["points"] if point["line"] == "opt"]
    assert rounds == list(range(10, 100, 3))


def test_every_figure_and_drawing_can_be_saved_with_its_data(document: Document) -> None:
    drawn = [plot for plot in PLOTS if plot.get("title") != "Never measured"]
    saved = document.saved()
    assert len(saved) == len(drawn) + 2, "two overlays are drawn"
    header, *lines = saved[0]["csv"].splitlines()
    assert header == "system,workload,table_size,metric,mean,low,high,runs"
    assert len(lines) == 13
    assert HOSTILE in saved[0]["csv"]
    groups = [content for name, found, content in document.elements if found.get("class") == "downloads"]
    assert len(groups) == len(saved)


def test_one_legend_serves_all_figures(source: str) -> None:
    figures = source[source.index('<section id="figures">') : source.index('<section id="overlay">')]
    shared, _, cards = figures.partition('<div class="figures">')
    assert Document(shared + "</section>").texts("li") == ["vitis", "rvr", "opt", HOSTILE, "low"]
    assert cards.count('<ul class="legend">') == 3, "three figures tell their parameters apart"


def test_what_was_run_and_which_runs_failed(document: Document) -> None:
    facts = dict(zip(document.texts("dt"), document.texts("dd"), strict=True))
    assert facts["Systems"] == "vitis, rvr, opt", "in the order of the description"
    assert facts["Workloads"] == f"{HOSTILE}, low"
    assert facts["Table size"] == "5 · 10 · 20"
    assert facts["Runs"] == "26 done, 1 failed"
    assert facts["CPU time"] == "1 h 9 min"
    assert facts["Code version"] == "9.8.7+abc"
    assert f"opt on {HOSTILE}, seed 1" in document.texts("strong")
    assert "MemoryError: 61 GB <b>too much</b>" in document.texts("span")
    assert document.texts("h1") == ["A sample & its title"]


def test_tables_are_readable_and_sortable_by_number(source: str, document: Document) -> None:
    assert ">12,345<" in source
    assert ">1 min 23 s<" in source
    assert 'data-by="0.5"' in source
    buttons = [attributes for tag, attributes, _ in document.elements if tag == "button"]
    assert len([attributes for attributes in buttons if attributes == {"type": "button"}]) > 10
    assert all(attributes["type"] == "button" for attributes in buttons)


def test_hostile_names_stay_text(source: str, document: Document) -> None:
    assert HOSTILE not in source
    assert "<b>too much" not in source
    assert "<i>part" not in source
    scripts = [attributes for tag, attributes, _ in document.elements if tag == "script"]
    assert [attributes["type"] for attributes in scripts].count("module") == 3
    assert {attributes["type"] for attributes in scripts} == {"module", "application/json"}
    assert any(HOSTILE in label for spec in document.specs() for label in _labels(spec))


def _labels(spec: dict[str, Any]) -> list[str]:
    return [point["line"] for rows in spec["datasets"].values() for point in rows if "line" in point]


def test_nothing_is_loaded_from_anywhere(source: str, document: Document) -> None:
    policy = next(found["content"] for _, found, _ in document.elements if "http-equiv" in found)
    assert policy is not None
    assert policy.startswith("default-src 'none'")
    assert document.attributes("src") == []
    assert [address for address in document.attributes("href") if re.match(r"[a-z]+:|//", address)] == ["data:,"]
    own = "".join(part for part in re.split(r'<script type="module">.*?</script>', source, flags=re.DOTALL))
    assert "http://" not in own
    assert "https://" not in own
    assert "url(" not in own
    assert "@import" not in own


def test_links_lead_to_the_folders(experiment: Path, page: Path, tmp_path: Path) -> None:
    elsewhere = write_page(experiment, tmp_path / "new folder" / "out.html")
    for written in (page, elsewhere):
        addresses = [a for a in Document(written.read_text("utf-8")).attributes("href") if not a.startswith(("#", "d"))]
        assert len(addresses) > 6
        simulated = [a for a in addresses if "run_id=" not in a or re.search("=[ab]{16}/", a)]
        assert all((written.parent / unquote(address)).exists() for address in simulated)
    assert [path.name for path in elsewhere.parent.iterdir()] == ["out.html"], "no partial file stays"


def test_overlays_are_drawn_side_by_side(source: str, document: Document) -> None:
    pictures = [ElementTree.fromstring(found) for found in re.findall(r'<svg class="overlay".*?</svg>', source)]
    assert len(pictures) == 2
    vitis, rvr = (Document(ElementTree.tostring(picture, encoding="unicode")) for picture in pictures)
    assert any("subscriber" in title for title in vitis.texts("title"))
    assert any("rendezvous" in title for title in rvr.texts("title"))
    assert all("topic" in label and "subscriber" in label for label in vitis.attributes("aria-label"))
    inside = [float(number) for path in rvr.attributes("d") if "Q" in path for number in re.findall(r"[\d.]+", path)]
    assert all(0 < number < 440 for number in inside)


@pytest.mark.parametrize("mode", ["light", "dark"])
def test_colours_stand_out(source: str, mode: str) -> None:
    light, dark = re.findall(r":root \{(.*?)\}", source, flags=re.DOTALL)[:2]
    found = dict(re.findall(r"--([\w-]+): (#[0-9a-f]{6})", light if mode == "light" else dark))
    for ground in ("page", "card"):
        for text in ("ink", "muted", "accent"):
            assert _contrast(found[text], found[ground]) >= 4.5, (text, ground)
    for i in range(1, 8):
        assert _contrast(found[f"series-{i}"], found["card"]) >= 3, i
    for note in ("warn", "bad"):
        assert _contrast(found["muted"], found[note]) >= 4.5, note


def _contrast(one: str, other: str) -> float:
    """As WCAG defines it."""

    def luminance(colour: str) -> float:
        parts = [int(colour[i : i + 2], 16) / 255 for i in (1, 3, 5)]
        linear = [part / 12.92 if part <= 0.04045 else ((part + 0.055) / 1.055) ** 2.4 for part in parts]
        return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]

    high, low = sorted((luminance(one), luminance(other)), reverse=True)
    return (high + 0.05) / (low + 0.05)


@pytest.fixture
def unfinished(tmp_path: Path) -> Path:
    """An experiment that is drawn in no time: there is nothing to draw."""
    runs = [run_row(f"{seed}" * 16, "vitis", "low", {"table_size": 5}, seed, error="it broke") for seed in (1, 2)]
    return write_experiment(tmp_path / "e", {"name": "nothing", "plots": PLOTS[:1]}, runs=runs)


def test_an_experiment_without_a_finished_run(unfinished: Path) -> None:
    source = write_page(unfinished).read_text("utf-8")
    document = Document(source)
    assert document.texts("h1") == ["nothing"]
    assert "2 runs failed." in document.texts("strong")
    assert "it broke" in document.texts("span")
    assert document.specs() == []
    assert len(source) < 50_000, "without charts the library stays out"


def test_one_seed_has_no_interval_and_none_is_a_category(tmp_path: Path) -> None:
    series = [mean_row("opt", "w", {"most": most}, "hops", hops) for most, hops in ((15, 3.0), (9, 4.0), (None, 2.5))]
    runs = [run_row(f"{i}" * 16, "opt", "w", json.loads(row["parameters"]), 1) for i, row in enumerate(series)]
    folder = write_experiment(tmp_path / "e", {"plots": [{"x": "most", "y": "hops"}]}, runs=runs, series=series)
    document = Document(write_page(folder).read_text("utf-8"))
    (spec,) = document.specs()
    assert [point["x"] for point in spec["datasets"]["points"]] == ["9", "15", "none"]
    assert [layer["mark"]["type"] for layer in spec["layer"]] == ["line", "point"]
    assert "Hops falls from 4 at most 9 to 2.5 at none." in document.texts("p")
    assert document.texts("h1") == ["e"]
    assert not any("±" in text for text in document.texts("td"))


def test_too_many_lines_are_divided_but_systems_stay_together(tmp_path: Path) -> None:
    grid = [("vitis", {"size": size, "reach": reach}) for size in (5, 10, 15) for reach in (1, 2, 3)]
    series = [mean_row(*at, "hops", 3.0) for at in [("rvr", "w", {}), *((name, "w", found) for name, found in grid)]]
    runs = [run_row(f"{i}" * 16, row["system"], "w", json.loads(row["parameters"]), 1) for i, row in enumerate(series)]
    plots = [{"x": "size", "y": "hops"}, {"x": "load", "y": "hops"}]
    folder = write_experiment(tmp_path / "e", {"plots": plots}, runs=runs, series=series)
    document = Document(write_page(folder).read_text("utf-8"))
    first, *others = document.specs()
    assert {point["line"] for point in first["datasets"]["points"]} == {f"vitis · reach {i}" for i in (1, 2, 3)}
    assert document.texts("h4") == [f"reach {reach}, size {size}" for reach in (1, 2, 3) for size in (5, 10, 15)]
    for spec in others:
        assert [point["line"] for point in spec["datasets"]["points"]] == ["rvr", "vitis"], "a baseline is in all"


def test_categories_stand_in_order_and_side_by_side(tmp_path: Path) -> None:
    systems = ["rvr", "vitis"]
    series = [mean_row(name, on, {}, "hops", 3.0, 0.5) for name in systems for on in ("small", "large")]
    runs = [run_row(f"{i}" * 16, row["system"], row["workload"], {}, 1) for i, row in enumerate(series)]
    config = {"plots": [{"x": "workload", "y": "hops"}], "workloads": [{"name": "small"}, {"name": "large"}]}
    folder = write_experiment(tmp_path / "e", config, runs=runs, series=series)
    (spec,) = Document(write_page(folder).read_text("utf-8")).specs()
    whisker, marker = spec["layer"]
    assert (whisker["mark"]["type"], marker["mark"]["type"]) == ("rule", "point")
    assert marker["encoding"]["xOffset"]["scale"]["domain"] == systems
    assert marker["encoding"]["x"]["sort"] == ["small", "large"]


@pytest.mark.slow
def test_the_same_experiment_gives_the_same_page(experiment: Path, page: Path) -> None:
    chart_library.cache_clear()
    again = write_page(experiment, page.with_name("again.html"))  # in the same folder: links are relative
    assert again.read_bytes() == page.read_bytes()
    again.unlink()


def test_mistakes_are_one_sentence(tmp_path: Path, unfinished: Path) -> None:
    with pytest.raises(UsageError, match="no such folder"):
        write_page(tmp_path / "missing")
    Manifest(kind="profile", stage="x", version="0").write(tmp_path)
    with pytest.raises(UsageError, match="holds a profile, expected a experiment"):
        write_page(tmp_path)
    with pytest.raises(UsageError, match="is a folder"):
        write_page(unfinished, tmp_path)
    with pytest.raises(UsageError, match="cannot be written"):
        write_page(unfinished, tmp_path / "manifest.json" / "page.html")


def test_the_command_says_where_the_page_is(unfinished: Path, tmp_path: Path) -> None:
    app = typer.Typer()
    app.command()(report)
    target = tmp_path / "page.html"
    done = CliRunner().invoke(app, [str(unfinished), "--out", str(target), "--json"])
    assert done.exit_code == 0, done.output
    answer = json.loads(done.output)
    assert answer["page"] == str(target)
    assert answer["bytes"] == target.stat().st_size
    said = CliRunner().invoke(app, [str(unfinished), "--out", str(target)]).output
    assert "page.html" in said.replace("\n", "")
