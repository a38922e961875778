"""What a simulation leaves behind: tables, headline numbers, and how they are stored and shown."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from grapevine.metrics.catalogue import Metric, described
from grapevine.metrics.headlines import BRIEF, GROUPS, HEADLINE
from grapevine.model import tables
from grapevine.model.card import Facts, card
from grapevine.model.folder import new_folder
from grapevine.model.location import Location, as_location, local_draft
from grapevine.model.manifest import Manifest, read_manifest
from grapevine.model.store import read_table, write_table
from grapevine.sim.export import to_networkx
from grapevine.systems.registry import all_systems, system_named

if TYPE_CHECKING:
    import networkx as nx
    import pandas as pd

    from grapevine.sim.picture import Picture

KIND = "simulation"
SIMULATIONS = "simulations"  # the folder of an experiment's runs


@dataclass(frozen=True, eq=False)
class Simulation:
    """A finished run. Tables are Arrow tables in the schemas of docs/tables.md, and `events_df` and its like the same
    as data frames of pandas."""

    system: str
    driver: str  # by which facet of the system it ran
    config: dict[str, Any]  # of that facet
    settings: dict[str, Any]  # of the run: rounds, churn, how it was measured
    workload: str
    seed: int
    summary: dict[str, float | None]
    tables: dict[str, pa.Table] = field(repr=False)
    version: str = ""

    @property
    def events(self) -> pa.Table:
        """Published events and what became of them."""
        return self.tables[tables.EVENTS.name]

    @property
    def nodes(self) -> pa.Table:
        """Degree and load per node."""
        return self.tables[tables.NODE_LOAD.name]

    @property
    def topics(self) -> pa.Table:
        """Clusters, gateways and diameter per topic."""
        return self.tables[tables.TOPIC_OVERLAY.name]

    @property
    def links(self) -> pa.Table:
        """The links of the overlay at the end of the run, with what each is for."""
        return self.tables[tables.LINKS.name]

    @property
    def rounds(self) -> pa.Table:
        """The run as it went."""
        return self.tables[tables.ROUNDS.name]

    def events_df(self) -> pd.DataFrame:
        """`events` as a data frame of pandas."""
        return self.events.to_pandas()

    def nodes_df(self) -> pd.DataFrame:
        """`nodes` as a data frame of pandas."""
        return self.nodes.to_pandas()

    def topics_df(self) -> pd.DataFrame:
        """`topics` as a data frame of pandas."""
        return self.topics.to_pandas()

    def links_df(self) -> pd.DataFrame:
        """`links` as a data frame of pandas."""
        return self.links.to_pandas()

    def rounds_df(self) -> pd.DataFrame:
        """`rounds` as a data frame of pandas."""
        return self.rounds.to_pandas()

    def plot(self) -> Picture:
        """A picture of the run: hit ratio and overhead as it went, degrees, and what nodes had to receive.

        A figure of matplotlib, which a notebook shows and `savefig` stores; no display is needed.
        """
        from grapevine.sim.picture import draw  # here, since matplotlib takes a while to import

        return draw(self)

    def to_networkx(self) -> nx.Graph[int]:
        """The overlay at the end of the run as a graph of networkx (`sim/export.py`)."""
        return to_networkx(self)

    def save(self, folder: str | Location, *, force: bool = False) -> Manifest:
        """Write the tables and a manifest into a new folder; UsageError if it is there and `force` is not given, or was
        not written by Grapevine."""
        with (
            new_folder(as_location(folder), kind=KIND, force=force) as draft,
            local_draft(draft) as local,
        ):
            return self.write(local)

    def write(self, folder: Path) -> Manifest:
        """Write the tables and a manifest into this folder, a draft of the caller's (`new_folder`)."""
        manifest = Manifest(
            kind=KIND,
            stage=f"simulate {self.system}",
            version=self.version,
            config={"system": self.system, "driver": self.driver, "parameters": self.config, "run": self.settings},
            seed=self.seed,
            inputs=[self.workload],
            tables={
                table.name: write_table(self.tables[table.name], folder, table)
                for table in tables_of(self.system, self.driver)
            },
            counts=dict(self.summary),
        )
        manifest.write(folder)
        return manifest

    @classmethod
    def load(cls, folder: str | Location) -> Simulation:
        """Read what `save` or `grapevine simulate` wrote."""
        folder = as_location(folder)
        manifest = read_manifest(folder, KIND)
        system, driver = manifest.config["system"], manifest.config["driver"]
        stored = manifest.tables_in(folder)
        return cls(
            system=system,
            driver=driver,
            config=manifest.config["parameters"],
            settings=manifest.config["run"],
            workload=manifest.inputs[0],
            seed=manifest.seed or 0,
            summary=manifest.counts,
            tables={table.name: read_table(stored, table) for table in tables_of(system, driver)},
            version=manifest.version,
        )

    def __repr__(self) -> str:
        return f"Simulation({self.system} on {self.workload}: {', '.join(self._headline())})"

    def _repr_html_(self) -> str:
        others = [described(name) for name in self.summary if name not in {metric.name for metric in HEADLINE}]
        groups = {name: self._facts(metrics) for name, metrics in (*GROUPS.items(), ("Also measured", others))}
        return card(f"{self.system} on {self.workload}", self._about(), groups)

    def _about(self) -> str:
        """How it ran, in a line."""
        if self.driver == "peers":
            long = f"{self.settings['hours']:g} h of virtual time" if "hours" in self.settings else "in virtual time"
        else:
            long = f"{self.settings['rounds']:,} rounds" if "rounds" in self.settings else "by rounds"
        return f"{self.nodes.num_rows:,} nodes, {long}, seed {self.seed}"

    def _facts(self, metrics: Iterable[Metric]) -> Facts:
        known = ((metric, self.summary.get(metric.name)) for metric in metrics)
        return [(metric.label, metric.shown_with_unit(value)) for metric, value in known if value is not None]

    def _headline(self) -> list[str]:
        known = [(metric, self.summary.get(metric.name)) for metric in BRIEF]
        return [f"{metric.label} {metric.shown(value)}" for metric, value in known if value is not None]


def run_folder(simulations: Location, run_id: str) -> Location:
    """The folder of one run among an experiment's simulations; Spark reads the run's id from its name."""
    return simulations / f"run_id={run_id}"


def simulations_of(experiment: Location, manifest: Manifest) -> Location:
    """The runs of a finished experiment: beside its tables, or in its folder, if the tables are a generation of it."""
    beside = manifest.tables_in(experiment) / SIMULATIONS
    return beside if beside.is_dir() else experiment / SIMULATIONS


def tables_of(system: str, driver: str) -> list[tables.Table]:
    """The tables of a run: those of every run, and the system's own where the system is installed here."""
    known = all_systems().get(system)
    own = [measured.table for measured in known.own_tables(driver)] if known else []
    return [*tables.SIMULATION_TABLES, *own]


def own_tables(system: str, driver: str, rows: dict[str, list[dict[str, Any]]]) -> dict[str, pa.Table]:
    """A system's own tables of a run, by name, from the rows that it gave; one without rows is empty."""
    own = [measured.table for measured in system_named(system).own_tables(driver)]
    return {table.name: pa.Table.from_pylist(rows.get(table.name, []), schema=table.schema) for table in own}
