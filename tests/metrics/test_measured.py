"""Declarations of tables and what is measured of them."""

from __future__ import annotations

import pyarrow as pa
import pytest

from grapevine.metrics import measured
from grapevine.metrics.catalogue import CATALOGUE, Metric
from grapevine.metrics.definitions import Mean, Where
from grapevine.metrics.measured import Measure, MeasuredTable, Quantity, declare, measured_tables, quantities
from grapevine.model.tables import SIMULATION_TABLES, TOPIC_OVERLAY
from grapevine.systems.dictionary import own_tables_by_system

OWN = Metric("own_measure", "a measure of one's own", "The mean of a column.")


def test_what_is_declared_is_measured_and_in_the_catalogue(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(measured, "_DECLARED", list(measured_tables()))
    monkeypatch.delitem(CATALOGUE, OWN.name, raising=False)
    made = MeasuredTable(TOPIC_OVERLAY, (Measure(OWN, "avg(clusters)"),), quantities=(Quantity("parts", "parts"),))
    assert declare(made) is made
    assert measured_tables()[-1] is made
    assert CATALOGUE.pop(OWN.name) is OWN
    assert list(quantities())[-1] == "parts"


def test_only_what_has_a_definition_is_computed_in_memory() -> None:
    made = MeasuredTable(
        TOPIC_OVERLAY,
        (Measure.defined(OWN, Mean("clusters")), Measure(Metric("other", "other", ""), "max(clusters)")),
        where=Where("subscribers", ">", 0),
    )
    content = pa.table({"subscribers": [3, 0, 2], "clusters": [1, 9, 2]})
    assert made.in_memory(content) == {"own_measure": 1.5}
    assert made.in_memory(content.slice(1, 1)) == {"own_measure": None}


def test_all_that_is_measured_is_stored() -> None:
    own = [table for tables in own_tables_by_system().values() for table in tables]
    assert {made.table for made in measured_tables()} <= {*SIMULATION_TABLES, *own}
    for made in measured_tables():
        assert {quantity.column for quantity in made.quantities} <= set(made.table.column_names)
