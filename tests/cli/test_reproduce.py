"""`grapevine reproduce` and `run`: what they choose, and how they write it down."""

from __future__ import annotations

from pathlib import Path

import pytest

from grapevine.cli.reproduce import as_markdown, choose_claims, gather_evidence
from grapevine.experiment.claims import CLAIMS, Effort, Evidence, Finding, Grade, Judgement, judge_all
from grapevine.model.errors import UsageError
from grapevine.model.manifest import Manifest
from grapevine.pipeline.stage import Stage
from tests.cli.command import run


def test_a_paper_a_claim_or_all_may_be_asked_for() -> None:
    assert [claim.id for claim in choose_claims("v2")] == ["V2"]
    assert {claim.paper for claim in choose_claims("vitis")} == {"vitis"}
    assert {claim.id for claim in choose_claims("all")} == set(CLAIMS)
    numbers = [claim.number for claim in choose_claims("vitis")]
    assert numbers == sorted(numbers)
    with pytest.raises(UsageError, match=r"'X9': choose all, a paper .* or a claim"):
        choose_claims("X9")


def test_the_table_has_a_row_for_every_claim_and_counts_what_is_met() -> None:
    text = as_markdown(judge_all(CLAIMS.values(), Evidence({}, {})), quick=True)
    assert all(f"\n| {name} | " in text for name in CLAIMS)
    assert "Quick version" in text
    count = len(choose_claims("vitis"))
    assert f"\n## vitis\n\nOf {count} claims: {count} not here.\n" in text


def test_the_table_says_what_its_experiments_took() -> None:
    judged = judge_all(choose_claims("V2"), Evidence({}, {}))
    text = as_markdown(judged, {"vitis_fig4": Effort(110, 5, 90.0), "vitis_fig7": Effort(1, 1, 1.0)}, quick=False)
    assert text.endswith(
        "| experiment | runs | seeds | CPU minutes |\n|---|---|---|---|\n| vitis_fig4 | 110 | 5 | 1.5 |\n"
    )


def test_a_cause_that_no_run_shows_is_called_a_guess() -> None:
    (claim,) = choose_claims("V2")

    def written(*finding: str) -> str:
        return as_markdown([Judgement(claim, Finding("1 %", Grade.DIRECTION, *finding))], quick=False)

    assert "| direction | it is the data (a guess) |" in written("it is the data")
    shown = "it is the data (shown by vitis_fig4: `grapevine reproduce V2`)"
    assert f"| direction | {shown} |" in written("it is the data", "vitis_fig4")
    assert "Of 1 claims: 1 direction." in written("")


def test_one_paper_replaces_its_own_section_alone() -> None:
    whole = as_markdown(judge_all(CLAIMS.values(), Evidence({}, {})), quick=False)
    marked = whole.replace(" not here.\n", " met.\n")
    again = as_markdown(judge_all(choose_claims("vitis"), Evidence({}, {})), quick=False, before=marked)
    assert again.count(" not here.\n") == 1 and again.count(" met.\n") == marked.count(" met.\n") - 1
    assert again.count("\n## ") == whole.count("\n## ")
    one = as_markdown(judge_all(choose_claims("V2"), Evidence({}, {})), quick=False, before=marked)
    assert one == marked  # a single claim does not replace a section
    assert as_markdown(judge_all(choose_claims("V2"), Evidence({}, {})), quick=False).count("\n| V") == 1


STAGE = Stage(quiet=True)  # none of these tests needs its Spark


def test_without_traces_a_claim_says_what_it_lacks(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("GRAPEVINE_DATA", str(tmp_path / "nowhere"))
    evidence = gather_evidence(choose_claims("V12"), tmp_path / "out", quick=True, stage=STAGE)
    assert "set GRAPEVINE_DATA" in evidence.absent["vitis_fig11"]


def test_stored_results_are_judged_without_running_anything(tmp_path: Path) -> None:
    claims = choose_claims("V2")
    nothing = gather_evidence(claims, tmp_path, quick=False, stage=STAGE, stored=True)
    assert "vitis_fig4" in nothing.absent["vitis_fig4"]
    assert list(tmp_path.iterdir()) == []


def test_an_experiment_with_failed_runs_is_no_evidence(tmp_path: Path) -> None:
    folder = tmp_path / "vitis_fig4"
    folder.mkdir()
    counts = {"runs": 22, "failed": 1}
    manifest = Manifest(
        kind="experiment", stage="run vitis_fig4", version="0", config={}, inputs=[], tables={}, counts=counts
    )
    manifest.write(folder)
    evidence = gather_evidence(choose_claims("V2"), tmp_path, quick=False, stage=STAGE, stored=True)
    assert evidence.absent["vitis_fig4"] == "1 of 22 runs of vitis_fig4 failed; its table `runs` says why"
    (judged,) = judge_all(choose_claims("V2"), evidence)
    assert judged.finding.grade == Grade.NOT_HERE


def test_a_dry_run_lists_the_runs_and_makes_nothing(tmp_path: Path) -> None:
    file = Path(__file__).parents[2] / "experiments" / "quickstart.toml"
    done = run("run", str(file), "--dry", cwd=tmp_path)
    assert done.returncode == 0
    assert done.stdout.count("vitis ") == 18
    assert list(tmp_path.iterdir()) == []
