"""The `churn` tables of experiments: where sessions come from, and how they are played."""

from __future__ import annotations

from typing import Any

from grapevine.model.config import field_types
from grapevine.model.workload import Churn
from grapevine.sim.churn import ChurnConfig, Schedule, make_schedule
from grapevine.synthetic import generate_churn


def split_churn(described: dict[str, Any]) -> tuple[dict[str, Any], ChurnConfig]:
    """A `churn` table, without lists, as where sessions come from (path and format, or model and its parameters) and
    how they are played; UsageError if its values contradict each other."""
    playing = field_types(ChurnConfig)
    source = {key: value for key, value in described.items() if key not in playing}
    return source, ChurnConfig(**{key: value for key, value in described.items() if key in playing})


def schedule_of(described: dict[str, Any], node_count: int, recorded: Churn | None, seed: int) -> Schedule | None:
    """The schedule that a `churn` table describes; `recorded` are the sessions of the trace that it names, if any."""
    source, config = split_churn(described)
    sessions = recorded
    if "model" in source:
        sessions = generate_churn(source.pop("model"), seed=seed, **source)
    return make_schedule(config, node_count, sessions, seed=seed)
