"""How a run is watched: what is told when, and how it looks on a terminal, on a pipe and in a notebook."""

from __future__ import annotations

import io
import re
import sys
import types
from typing import Any

import pytest
from rich.console import Console

from grapevine import Workload, simulate
from grapevine.kernels import compiler
from grapevine.sim import display
from grapevine.sim.clock import ClockConfig
from grapevine.sim.display import describe, shown_progress
from grapevine.sim.progress import Extent, in_notebook, watched

ROUNDS, SECONDS = Extent(60, is_timed=False), Extent(3_600, is_timed=True)
ROW: dict[str, Any] = {"stage": "running", "round": 30, "online": 2_000, "hit_ratio": 0.5, "degree": 17.84}
COMPILING: dict[str, Any] = {"stage": "compiling", "round": 0, "sentence": "compiling kernels"}


@pytest.fixture(scope="module")
def small() -> Workload:
    return Workload.from_dict({number: ["news", "jazz"] for number in range(30)})


# What is told


def test_a_run_by_rounds_tells_its_rows_and_then_that_it_measures(small: Workload) -> None:
    told: list[dict[str, Any]] = []
    run = simulate("vitis", small, rounds=25, threads=1, progress=told.append)
    seen = [(row["stage"], row["round"]) for row in told if row["stage"] != "compiling"]
    assert seen == [("running", 10), ("running", 20), ("running", 25), ("measuring", 25)]
    rows = [{name: row[name] for name in run.rounds.column_names if name in row} for row in told[-4:-1]]
    stored = [{name: value for name, value in row.items() if value is not None} for row in run.rounds.to_pylist()]
    assert [{name: value for name, value in row.items() if value is not None} for row in rows] == stored


def test_a_run_in_virtual_time_tells_seconds(small: Workload) -> None:
    told: list[dict[str, Any]] = []
    clock = ClockConfig(latency="constant", hours=0.2, start_s=10, publish_from_s=100)
    simulate("rappel", small, clock=clock, progress=told.append)
    seen = [(row["stage"], row["round"]) for row in told if row["stage"] != "compiling"]
    assert seen == [("running", 300), ("running", 600), ("running", 720), ("measuring", 720)]


def test_a_compiler_is_told_of_to_the_watcher_or_to_the_log(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    def compile_now() -> None:
        compiler.event.start_event("numba:compile")
        compiler.event.end_event("numba:compile")

    told: list[dict[str, Any]] = []
    with watched("vitis", told.append, ROUNDS) as tell:
        compile_now()
        compile_now()
        assert tell == told.append
    sentence = "compiling kernels for vitis, once: about a minute"
    assert told == [{"stage": "compiling", "round": 0, "sentence": sentence}], "once"
    assert not caplog.messages
    with watched("vitis", False, ROUNDS) as nobody:
        compile_now()
    assert nobody is None and caplog.messages == [sentence]
    compile_now()
    assert len(told) == len(caplog.messages) == 1, "nor afterwards"


def test_nobody_watches_in_a_script_unless_asked_to(capsys: pytest.CaptureFixture[str], small: Workload) -> None:
    assert not in_notebook()
    simulate("vitis", small, rounds=10, threads=1)
    assert "round" not in capsys.readouterr().err
    simulate("vitis", small, rounds=10, threads=1, progress=True)
    assert "round 10/10: 30 online" in capsys.readouterr().err


# How it looks


def test_places_say_rounds_or_seconds_of_virtual_time() -> None:
    assert ROUNDS.place(30) == "round 30/60"
    assert SECONDS.place(600) == "600/3,600 s of virtual time"


def test_a_row_in_words_says_who_is_there_and_how_many_neighbours_they_have() -> None:
    assert describe(ROW) == "2,000 online · hit ratio 50.00% · 17.8 neighbours each"
    moving = describe(ROW | {"joined": 3, "left": 1_200, "bytes_sent": 2_500_000_000})
    assert moving.endswith(" · 3 joined · 1,200 left · 2.50 GB between blocks")
    assert "joined" not in describe(ROW | {"joined": 2_000, "left": 0}), "all of them, at the start"


def test_on_a_pipe_there_is_a_line_now_and_then() -> None:
    console = Console(file=io.StringIO(), width=200, highlight=False)
    with shown_progress(ROUNDS, console) as tell:
        tell(COMPILING)
        for now in range(1, 61):
            tell(ROW | {"round": now})
        tell(ROW | {"stage": "measuring", "round": 60})
    lines = console.file.getvalue().splitlines()  # type: ignore[attr-defined]
    assert lines[0] == "compiling kernels"
    assert [int(line.split("/")[0].split()[1]) for line in lines[1:-1]] == [1, 8, 15, 23, 30, 38, 45, 53, 60]
    assert lines[-1] == "round 60/60: measuring"


def last_line(console: Console) -> str:
    """What a terminal shows last, without its colours and movements."""
    text = re.sub(r"\x1b\[[0-9;?]*[a-zA-Z]", "", console.file.getvalue())  # type: ignore[attr-defined]
    return [line for line in re.split(r"[\r\n]", text) if line.strip()][-1].strip()


def test_on_a_terminal_the_clock_goes_on_while_it_measures(monkeypatch: pytest.MonkeyPatch) -> None:
    now = [0.0]
    console = Console(file=io.StringIO(), width=150, force_terminal=True, get_time=lambda: now[0])
    columns = display._columns

    def still(console: Console) -> Any:
        bar = columns(console)
        bar.live.auto_refresh, bar.get_time = False, lambda: now[0]
        shown.append(bar)
        return bar

    shown: list[Any] = []
    monkeypatch.setattr(display, "_columns", still)

    def line_at(second: float) -> str:
        now[0] = second
        shown[0].refresh()
        return last_line(console)

    with shown_progress(SECONDS, console) as tell:
        tell(COMPILING)
        assert "compiling kernels" in console.file.getvalue()  # type: ignore[attr-defined]
        assert re.fullmatch(r"0/3,600 s of virtual time \S+ 0:00:05 compiling", line_at(5))
        tell(ROW | {"round": 3_600})
        assert re.fullmatch(r"3,600/3,600 s of virtual time \S+ 0:00:10 2,000 online · .* neighbours each", line_at(10))
        tell(ROW | {"stage": "measuring", "round": 3_600})
        assert re.fullmatch(r".* 0:01:00 measuring …", line_at(60))
        assert re.fullmatch(r".* 0:02:00 measuring …", line_at(120))
    assert re.fullmatch(r".* 0:02:00 2,000 online · .* neighbours each", last_line(console))


def test_a_narrow_terminal_shows_the_place_and_the_clock_and_what_fits() -> None:
    console = Console(file=io.StringIO(), width=60, force_terminal=True)
    with shown_progress(ROUNDS, console) as tell:
        tell(ROW | {"round": 60})
    assert re.fullmatch(r"round 60/60 \S{20} 0:00:00 2,000 online · hit…", last_line(console))


class Notebook:
    """What the display needs of IPython: outputs that can be replaced."""

    def __init__(self) -> None:
        self.pages: list[str] = []

    def display(self, page: str, *, display_id: bool) -> Notebook:
        assert display_id
        self.pages.append(page)
        return self

    def update(self, page: str) -> None:
        self.pages.append(page)


def test_in_a_notebook_the_output_of_the_cell_is_renewed(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], small: Workload
) -> None:
    notebook, shell = Notebook(), types.SimpleNamespace(kernel=object())
    shown = types.SimpleNamespace(display=notebook.display, HTML=lambda page: page)
    monkeypatch.setitem(sys.modules, "IPython", types.SimpleNamespace(get_ipython=lambda: shell))
    monkeypatch.setitem(sys.modules, "IPython.display", shown)
    monkeypatch.setattr(display, "REFRESH_S", 0.01)
    assert in_notebook()
    simulate("vitis", small, rounds=20, threads=1)  # shown by default
    pages = [re.sub("<[^>]*>", "", page).strip() for page in notebook.pages]
    assert pages[0].startswith("round 0/20") and "starting" in pages[0]
    assert pages[-1].startswith("round 20/20") and "30 online" in pages[-1]
    assert len(pages) > 2, "it moved"
    assert all(page.startswith("<pre>") for page in notebook.pages)
    with shown_progress(ROUNDS) as tell:
        tell(COMPILING)
    assert capsys.readouterr().out == "compiling kernels\n"
    count = len(notebook.pages)
    simulate("vitis", small, rounds=2, threads=1, progress=False)
    assert len(notebook.pages) == count
