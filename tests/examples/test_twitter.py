"""The notebook: all its cells run, and it is stored as it was before it ran."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import matplotlib
import matplotlib.pyplot as plt
import pytest

from tests.examples.programs import EXAMPLES

NOTEBOOK = json.loads((EXAMPLES / "twitter.ipynb").read_text(encoding="utf-8"))
CODE = [cell for cell in NOTEBOOK["cells"] if cell["cell_type"] == "code"]


def test_it_is_stored_without_outputs() -> None:
    assert CODE and all(cell["outputs"] == [] and cell["execution_count"] is None for cell in CODE)


def test_all_cells_run_where_there_is_no_trace(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.delenv("GRAPEVINE_DATA", raising=False)
    monkeypatch.chdir(tmp_path)
    matplotlib.use("Agg")
    names: dict[str, Any] = {"__name__": "__main__"}
    try:
        for number, cell in enumerate(CODE):
            exec(compile("".join(cell["source"]), f"cell {number}", "exec"), names)
        assert len(names["axes"].lines) == len(names["runs"]) == 3
    finally:
        plt.close("all")
    summaries = {system: run.summary for system, run in names["runs"].items()}
    assert summaries["vitis"]["hit_ratio"] > 0.999 > summaries["opt"]["hit_ratio"]
    said = capsys.readouterr().out
    assert said.startswith("rvr and vitis reach 100.0%")
    assert f"{summaries['vitis']['overhead']:.0%} is unasked for with vitis" in said
    assert f"opt reaches {summaries['opt']['hit_ratio']:.1%}" in said
    assert list(tmp_path.iterdir()) == []
