"""Numbers that no table holds."""

from __future__ import annotations

import pytest

from grapevine.metrics import findings
from grapevine.metrics.catalogue import CATALOGUE, Metric
from grapevine.metrics.findings import finding, is_finding


@pytest.mark.parametrize("name", ["ring", "lookup_hops", "wall_s", "repair_ms_p95", "false_positives_200"])
def test_what_no_table_holds_is_taken_from_the_manifest(name: str) -> None:
    assert is_finding(name)


@pytest.mark.parametrize("name", ["hit_ratio", "degree", "false_positives_", "events", "no_metric"])
def test_what_tables_hold_is_not(name: str) -> None:
    assert not is_finding(name)


def test_a_system_can_have_findings_of_its_own(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(findings, "_FINDINGS", [])
    made = finding(Metric("own_finding", "a finding of one's own", "Something that a system found."))
    assert is_finding("own_finding")
    assert CATALOGUE.pop("own_finding") is made
