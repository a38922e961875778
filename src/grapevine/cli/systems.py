"""`grapevine systems`: which systems there are, and what each can be told."""

from __future__ import annotations

import dataclasses
from typing import Annotated, Any

import typer
from rich.markup import escape

from grapevine.cli.console import JsonOption, err, out, print_json, table
from grapevine.model.config import Config
from grapevine.sim.clock import ClockConfig
from grapevine.systems.registry import DRIVERS, System, all_systems, broken, system_named


def systems(
    name: Annotated[str | None, typer.Argument(help="A system; without it, all are listed.")] = None,
    json: JsonOption = False,
) -> None:
    """Say which systems there are; with a name, every facet with its parameters, defaults and where they come from."""
    chosen = [system_named(name)] if name else list(all_systems().values())
    if json:
        print_json([_describe_system(system) for system in chosen])
        return
    for system in chosen:
        facets = ", ".join(system.facets)
        out.print(f"[bold]{system.name}[/]  {escape(system.summary)}", highlight=False)
        out.print(f"  [dim]{escape(system.paper)} · {facets}[/]", highlight=False)
        if system.needs:
            out.print(f"  needs {escape(system.needs)}", highlight=False)
        if name:
            _print_facets(system)
    for missing, reason in ({} if name else broken()).items():
        err.print(f"{escape(missing)} could not be loaded: {escape(reason)}")


_RUN_BY = {
    "rounds": "grapevine simulate {name}",
    "peers": "grapevine simulate {name} --driver peers",
    "live": "grapevine node --system {name}",
}


def how_to_run(system: System, facet: str) -> str:
    """The command that runs a facet of a system: the driver is named where it is not the system's first."""
    how = _RUN_BY[facet] if facet not in DRIVERS or facet != system.drivers[0] else _RUN_BY["rounds"]
    return how.format(name=system.name)


def _print_facets(system: System) -> None:
    for facet, kind in system.facets.items():
        title = f"{facet}: {how_to_run(system, facet)} --set KEY=VALUE"
        _print_parameters(title, kind.config_type, getattr(kind, "live_values", {}))
        if facet == "peers":
            _print_parameters("the clock that peers run by: --clock KEY=VALUE", ClockConfig, {})


def _print_parameters(title: str, config: type[Config], other: dict[str, Any]) -> None:
    """A row per parameter; `other` are defaults that differ from the config's."""
    made = table(title, "parameter", "default", "meaning", "source")
    for column in made.columns:
        column.justify = "left"
    for field in dataclasses.fields(config):
        meta = field.metadata
        default = str(other.get(field.name, field.default)).lower()
        made.add_row(field.name, default, escape(meta["help"]), escape(meta["source"]))
    out.print(made)


def _describe_system(system: System) -> dict[str, Any]:
    facets = {
        name: {"parameters": _parameters(facet.config_type, getattr(facet, "live_values", {}))}
        for name, facet in system.facets.items()
    }
    if "peers" in facets:
        facets["peers"]["clock"] = _parameters(ClockConfig, {})
    about = {"name": system.name, "summary": system.summary, "paper": system.paper, "needs": system.needs}
    return about | {"facets": facets}


def _parameters(config: type[Config], other: dict[str, Any]) -> list[dict[str, Any]]:
    return [
        {
            "name": field.name,
            "default": other.get(field.name, field.default),
            **{key: value for key, value in field.metadata.items() if value is not None},
        }
        for field in dataclasses.fields(config)
    ]
