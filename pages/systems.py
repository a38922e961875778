"""The reference of the systems: what each is, how it is run, and every parameter with its source."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator
from typing import Any

from grapevine.cli.systems import how_to_run
from grapevine.model.config import Config
from grapevine.net.config import NodeConfig
from grapevine.net.doors.mqtt.config import DoorConfig
from grapevine.net.retention import Retention
from grapevine.sim.clock import ClockConfig
from grapevine.systems.registry import System, all_systems
from pages.markdown import code, table, with_readings

EXPLAINED = {name: f"explain/{name}.md" for name in ("magnet", "omen", "rappel", "spidercast", "vitis")} | {
    "trellis": "trellis.md"
}
_SETTINGS = {  # of whatever runs, beside the parameters of its system
    "The clock of peers": ("`grapevine simulate --clock KEY=VALUE`, and `[clock]` of experiments.", ClockConfig),
    "A live node": ("`grapevine node --set KEY=VALUE`, and `[settings]` of node.toml.", NodeConfig),
    "What a live node keeps": ("`grapevine node --set KEY=VALUE`, and `[retention]` of node.toml.", Retention),
    "The MQTT door": ("`grapevine node --mqtt … --set KEY=VALUE`, and `[door]` of node.toml.", DoorConfig),
}


def systems_page() -> str:
    """All systems, and the settings of what runs them."""
    found = all_systems()
    parts = [
        "# Systems and their parameters",
        "",
        "Written by `make pages` from the configurations themselves; do not edit it by hand. `grapevine systems NAME`",
        "says the same. A source that begins with *ours* means that no paper gives the value; the others cite one.",
        "",
        *table(
            ["system", "idea", "runs by"],
            ([f"[`{name}`](#{name})", system.summary, ", ".join(system.facets)] for name, system in found.items()),
        ),
    ]
    for system in found.values():
        parts += _describe(system)
    for title, (where, config) in _SETTINGS.items():
        parts += ["", f"## {title}", "", where, "", *_parameters(config, {})]
    return "\n".join(parts) + "\n"


def _describe(system: System) -> Iterator[str]:
    """A section: what it is, and a table for each way to run it that has parameters of its own."""
    explained = f" [How it works](../{EXPLAINED[system.name]})." if system.name in EXPLAINED else ""
    idea = f"{system.summary[0].upper()}{system.summary[1:]}"
    yield from ("", f"## {system.name}", "", f"{idea}. From {system.paper}.{explained}")
    for facet, kind in system.facets.items():
        yield from ("", f"`{how_to_run(system, facet)} --set KEY=VALUE`", "")
        yield from _parameters(kind.config_type, getattr(kind, "live_values", {}))


def _parameters(config: type[Config], other: dict[str, Any]) -> Iterator[str]:
    """A row for each parameter; `other` are defaults that differ from the config's."""
    yield from table(
        ["parameter", "default", "meaning", "source"],
        (
            (
                code(field.name),
                code(str(other.get(field.name, field.default)).lower()),
                with_readings(field.metadata["help"] + _allowed(field.metadata)),
                with_readings(field.metadata["source"]),
            )
            for field in dataclasses.fields(config)
        ),
    )


def _allowed(meta: Any) -> str:
    """What else the parameter may be, for those that are a choice."""
    return f" ({', '.join(map(code, meta['choices']))})" if meta["choices"] else ""
