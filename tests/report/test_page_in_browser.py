"""The page in a real browser, driven by its command line: nothing but Chromium is needed."""

import base64
import hashlib
import re
import shutil
import subprocess
from html import unescape
from pathlib import Path
from xml.etree import ElementTree

import pytest

from tests.report.experiments import HOSTILE

NAMES = "chromium", "chromium-browser", "google-chrome", "google-chrome-stable", "chrome", "microsoft-edge"
BROWSER = next((found for name in NAMES if (found := shutil.which(name))), None)
pytestmark = pytest.mark.skipif(BROWSER is None, reason=f"no browser here: none of {', '.join(NAMES)} is installed")
DARK = "--blink-settings=preferredColorScheme=0"
DESKTOP = 1280


def open_page(page: Path, profile: Path, *options: str) -> tuple[str, list[str]]:
    """The document after its scripts have run, and what the console said.

    The browser's clock jumps to the next timer, and to its end when there is none: a script that waits for anything
    else sets timers meanwhile, which a long budget lets it do at no cost.
    """
    assert BROWSER is not None
    command = [BROWSER, "--headless=new", "--no-sandbox", "--disable-gpu", "--hide-scrollbars", "--no-first-run",
               "--disable-background-networking", f"--user-data-dir={profile}", "--enable-logging=stderr", "--v=0",
               "--virtual-time-budget=100000", f"--window-size={DESKTOP},900", "--dump-dom", *options,
               page.as_uri()]  # fmt: skip
    done = subprocess.run(command, capture_output=True, text=True, timeout=180, check=True)
    return done.stdout, [line for line in done.stderr.splitlines() if ":CONSOLE" in line]


def with_script(page: Path, target: Path, script: str) -> Path:
    """A copy that also runs this script; its policy allows that, and forbids what the original's forbids."""
    allowed = base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()
    source = page.read_text("utf-8").replace("script-src ", f"script-src 'sha256-{allowed}' ", 1)
    before, end, after = source.rpartition("</body>")  # the library has texts like it
    target.write_text(f'{before}<script type="module">{script}</script>{end}{after}', "utf-8")
    return target


@pytest.mark.parametrize(
    "options", [pytest.param((), id="light"), pytest.param((DARK,), id="dark", marks=pytest.mark.slow)]
)
def test_every_chart_is_drawn_without_a_word_on_the_console(page: Path, tmp_path: Path, options: tuple[str]) -> None:
    document, console = open_page(page, tmp_path / "profile", *options)
    assert console == []
    assert 'data-drawn="yes"' in document
    charts = re.findall(r'<div class="chart[^"]*"[^>]*>(.*?)<script', document, flags=re.DOTALL)
    assert len(charts) == page.read_text("utf-8").count('class="chart"') > 8
    for chart in charts:
        assert "<svg" in chart
        assert chart.count("<path") > 5
    assert HOSTILE not in document
    assert f'data-widths="{DESKTOP} {DESKTOP}"' in document


def test_nothing_hangs_over_the_edge_of_a_phone(page: Path, tmp_path: Path) -> None:
    # In a frame, because a window is at least 500 pixels wide.
    script = """
        const tell = () => {
          const { drawn, widths } = document.documentElement.dataset;
          const outside = [...document.querySelectorAll("svg")].filter((svg) => {
            const box = svg.getBoundingClientRect();
            return box.left < 0 || box.right > innerWidth;
          });
          const charts = document.querySelectorAll(".chart > svg, .chart > * > svg").length;
          drawn ? parent.postMessage(`${widths} ${outside.length} ${charts}`, "*") : setTimeout(tell, 50);
        };
        tell();
    """
    with_script(page, tmp_path / "inner.html", script)
    frame = tmp_path / "frame.html"
    frame.write_text(
        '<iframe src="inner.html" width="390" height="844" style="border: 0"></iframe><script>'
        'addEventListener("message", (told) => { document.body.dataset.told = told.data; });</script>'
    )
    document, console = open_page(frame, tmp_path / "profile")
    assert console == []
    charts = page.read_text("utf-8").count('class="chart"')
    assert re.findall('data-told="(.*?)"', document) == [f"390 390 0 {charts}"]


def test_the_console_and_the_page_tell_of_a_broken_chart(page: Path, tmp_path: Path) -> None:
    broken = tmp_path / "broken.html"
    broken.write_text(page.read_text("utf-8").replace('"mark":{"type":"line"', '"mark":{"type":"lime"', 1), "utf-8")
    document, console = open_page(broken, tmp_path / "profile")
    assert len(console) == 1
    assert document.count(">This chart could not be drawn: ") == 1


def test_tables_sort_by_mouse_and_say_so(page: Path, tmp_path: Path) -> None:
    script = """
        const table = document.querySelector("table");
        const column = [...table.tHead.rows[0].cells].findIndex((cell) => cell.textContent === "overhead");
        const heading = table.tHead.rows[0].cells[column];
        const seen = () => [...table.tBodies[0].rows].map((row) => parseFloat(row.cells[column].textContent));
        const record = (name) => document.body.setAttribute(name, `${heading.ariaSort}: ${seen().join(" ")}`);
        for (const name of ["data-first", "data-second"]) { heading.firstElementChild.click(); record(name); }
        table.tHead.rows[0].cells[2].firstElementChild.click();
        document.body.setAttribute("data-last", table.tBodies[0].rows[12].cells[2].textContent);
        document.body.setAttribute("data-marked", document.querySelectorAll("[aria-sort]").length);
    """
    document, console = open_page(with_script(page, tmp_path / "sorted.html", script), tmp_path / "profile")
    assert console == []
    first, second = (re.search(rf'data-{name}="(\w+): ([^"]*)"', document) for name in ("first", "second"))
    assert first is not None and second is not None
    values = [float(word) for word in first[2].split()]
    assert len(values) == 13
    assert (first[1], values) == ("ascending", sorted(values))
    assert (second[1], [float(word) for word in second[2].split()]) == ("descending", values[::-1])
    assert 'data-last="–"' in document, "what has no value comes last"
    assert 'data-marked="1"' in document


def test_the_first_column_stays_when_a_table_is_scrolled(page: Path, tmp_path: Path) -> None:
    script = """
        const box = document.querySelector("#runs .scroll");
        const [head, first] = box.querySelectorAll("thead th:first-child, tbody tr:first-child > :first-child");
        box.style.width = "300px";
        box.scrollLeft = 200;
        box.scrollTop = 60;
        const { left, top } = box.getBoundingClientRect();
        const at = (cell) => cell.getBoundingClientRect();
        document.body.dataset.stays = [box.scrollLeft, at(head).left - left, at(first).left - left].map(Math.round);
        document.body.dataset.above = Math.round(at(head).top - top);
    """
    document, _ = open_page(with_script(page, tmp_path / "scrolled.html", script), tmp_path / "profile")
    assert 'data-stays="200,1,1"' in document, "one pixel is the box's own edge"
    assert 'data-above="1"' in document


def test_labels_stand_at_the_ends_of_lines_where_there_is_room(page: Path, tmp_path: Path) -> None:
    script = """
        while (!document.documentElement.dataset.drawn) await new Promise((later) => setTimeout(later, 50));
        const labelled = [...document.querySelectorAll(".chart")].filter((chart) =>
          [...chart.querySelectorAll(".role-mark text")].some((name) => name.textContent === "vitis · table size 10"));
        const outside = labelled.flatMap((chart) => [...chart.querySelectorAll("text")].filter((name) =>
          name.getBoundingClientRect().right > chart.getBoundingClientRect().right));
        document.body.dataset.labels = `${labelled.length} ${outside.length}`;
        parent.postMessage(document.body.dataset.labels, "*");
    """
    copy = with_script(page, tmp_path / "inner.html", script)
    wide, _ = open_page(copy, tmp_path / "profile")
    assert 'data-labels="6 0"' in wide, "two panels of lines, and four of rows with their names"
    frame = tmp_path / "frame.html"
    frame.write_text(
        '<iframe src="inner.html" width="390" height="844"></iframe><script>'
        'addEventListener("message", (told) => { document.body.dataset.told = told.data; });</script>'
    )
    narrow, _ = open_page(frame, tmp_path / "profile")
    assert 'data-told="4 0"' in narrow, "on a phone lines have all the room, and rows keep their names"


def test_figures_are_saved_as_they_are_seen(page: Path, tmp_path: Path) -> None:
    """The data as it is stored; the picture on white, with its title and a legend, and nothing left to look up."""
    script = """
        const blobs = [];
        const create = URL.createObjectURL;
        URL.createObjectURL = (blob) => { blobs.push(blob); return create(blob); };
        const names = [];
        HTMLAnchorElement.prototype.click = function () { names.push(this.download); };
        while (!document.documentElement.dataset.drawn) await new Promise((later) => setTimeout(later, 50));
        const wanted = [0, 1, 2, -2].map((i) => [...document.querySelectorAll(".downloads button")].at(i));
        const until = async (done) => { while (!done()) await new Promise((later) => setTimeout(later, 1)); };
        for (const [i, button] of wanted.entries()) {
          button.click();
          await until(() => blobs.length > i);
        }
        const [csv, svg, png, drawing] = blobs;
        const write = (name, text) => document.body.setAttribute(`data-${name}`, text);
        write("names", names.join(" "));
        csv.text().then((text) => write("csv", text));
        svg.text().then((text) => write("svg", text));
        drawing.text().then((text) => write("drawing", text.length));
        png.slice(16, 24).arrayBuffer().then((size) => {  // where width and height stand
          const head = new DataView(size);
          write("png", `${png.type} ${head.getUint32(0)} ${head.getUint32(4)}`);
        });
        await until(() => ["csv", "svg", "drawing", "png"].every((name) => document.body.dataset[name]));
    """
    document, console = open_page(with_script(page, tmp_path / "saved.html", script), tmp_path / "profile", DARK)
    assert console == []
    found = {name: unescape(text) for name, text in re.findall(r' data-(\w+)="([^"]*)"', document)}
    assert found["names"].startswith("traffic-overhead.csv traffic-overhead.svg traffic-overhead.png rvr-on-low-")
    assert found["csv"].startswith("system,workload,table_size,metric,mean,low,high,runs\nvitis,low,5,overhead,")
    svg = ElementTree.fromstring(found["svg"])
    texts = ["".join(text.itertext()) for text in svg.iter("{http://www.w3.org/2000/svg}text")]
    assert {"Traffic overhead", "vitis · low", f"rvr · {HOSTILE}", "routing table size"} <= set(texts)
    assert "var(--" not in found["svg"]
    assert "#0072b2" in found["svg"] and "#56b4e9" not in found["svg"], "light colours on a dark page, too"
    kind, width, height = found["png"].split()
    assert kind == "image/png"
    assert (int(width), int(height)) == (2 * int(svg.get("width", 0)), 2 * int(svg.get("height", 0)))
    assert int(found["drawing"]) > 10_000


@pytest.mark.parametrize(("options", "colour"), [((), "rgb(246, 245, 241)"), ((DARK,), "rgb(20, 23, 26)")])
def test_the_page_follows_the_light(page: Path, tmp_path: Path, options: tuple[str, ...], colour: str) -> None:
    script = """
        document.body.dataset.ground = getComputedStyle(document.body).backgroundColor;
        const line = await new Promise((found) => {
          const look = () => {
            const mark = document.querySelector(".chart .mark-line path");
            mark ? found(mark) : setTimeout(look, 50);
          };
          look();
        });
        document.body.dataset.stroke = getComputedStyle(line).stroke;
    """
    copy = with_script(page, tmp_path / "coloured.html", script)
    document, _ = open_page(copy, tmp_path / "profile", *options)
    assert f'data-ground="{colour}"' in document
    stroke = re.search(r'data-stroke="(rgb[^"]*)"', document)
    assert stroke is not None
    assert stroke[1] == ("rgb(86, 180, 233)" if options else "rgb(0, 114, 178)")
