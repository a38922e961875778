"""`grapevine reproduce` and `run`: what they choose, and how they write it down."""

from __future__ import annotations

from pathlib import Path

import pytest

from grapevine.cli.reproduce import as_markdown, choose_claims, gather_evidence
from grapevine.experiment.claims import CLAIMS, NOT_HERE, Evidence, judge_all
from grapevine.model.errors import UsageError
from grapevine.model.manifest import Manifest
from grapevine.pipeline.stage import Stage
from tests.cli.command import run


def test_a_paper_a_claim_or_all_may_be_asked_for() -> None:
    assert [claim.id for claim in choose_claims("v2")] == ["V2"]
    assert {claim.paper for claim in choose_claims("vitis")} == {"vitis"}
    assert choose_claims("all") == list(CLAIMS.values())
    with pytest.raises(UsageError, match=r"'X9': choose all, a paper .* or a claim"):
        choose_claims("X9")


def test_the_table_has_a_row_for_every_claim_and_counts_what_is_met() -> None:
    text = as_markdown(judge_all(CLAIMS.values(), Evidence({}, {})), quick=True)
    assert all(f"\n| {name} | " in text for name in CLAIMS)
    assert "Quick version" in text
    assert "\n## vitis\n\n0 of 13 claims are met.\n" in text


def test_one_paper_replaces_its_own_section_alone() -> None:
    whole = as_markdown(judge_all(CLAIMS.values(), Evidence({}, {})), quick=False)
    marked = whole.replace("0 of 13 claims", "13 of 13 claims").replace("0 of 12 claims", "12 of 12 claims")
    again = as_markdown(judge_all(choose_claims("vitis"), Evidence({}, {})), quick=False, before=marked)
    assert "0 of 13 claims" in again and "12 of 12 claims" in again
    assert again.count("\n## ") == whole.count("\n## ")
    one = as_markdown(judge_all(choose_claims("V2"), Evidence({}, {})), quick=False, before=marked)
    assert one == marked  # a single claim does not replace a section
    assert as_markdown(judge_all(choose_claims("V2"), Evidence({}, {})), quick=False).count("\n| V") == 1


def test_without_traces_a_claim_says_what_it_lacks(
    stage: Stage, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("GRAPEVINE_DATA", str(tmp_path / "nowhere"))
    evidence = gather_evidence(choose_claims("V12"), tmp_path / "out", quick=True, stage=stage)
    assert "set GRAPEVINE_DATA" in evidence.absent["vitis_fig11"]


def test_stored_results_are_judged_without_running_anything(stage: Stage, tmp_path: Path) -> None:
    claims = choose_claims("V2")
    nothing = gather_evidence(claims, tmp_path, quick=False, stage=stage, stored=True)
    assert "vitis_fig4" in nothing.absent["vitis_fig4"]
    assert list(tmp_path.iterdir()) == []


def test_an_experiment_with_failed_runs_is_no_evidence(stage: Stage, tmp_path: Path) -> None:
    folder = tmp_path / "vitis_fig4"
    folder.mkdir()
    counts = {"runs": 22, "failed": 1}
    manifest = Manifest(
        kind="experiment", stage="run vitis_fig4", version="0", config={}, inputs=[], tables={}, counts=counts
    )
    manifest.write(folder)
    evidence = gather_evidence(choose_claims("V2"), tmp_path, quick=False, stage=stage, stored=True)
    assert evidence.absent["vitis_fig4"] == "1 of 22 runs of vitis_fig4 failed; its table `runs` says why"
    (judged,) = judge_all(choose_claims("V2"), evidence)
    assert judged.finding.verdict == NOT_HERE


def test_a_dry_run_lists_the_runs_and_makes_nothing(tmp_path: Path) -> None:
    file = Path(__file__).parents[2] / "experiments" / "quickstart.toml"
    done = run("run", str(file), "--dry", cwd=tmp_path)
    assert done.returncode == 0
    assert done.stdout.count("vitis ") == 18
    assert list(tmp_path.iterdir()) == []
