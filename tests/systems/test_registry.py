"""One record per system: what it has, how it is found, and systems that other distributions bring."""

from __future__ import annotations

import os
import subprocess
import sys
import tomllib
from pathlib import Path
from typing import Any

import pytest

from grapevine.model.errors import UsageError
from grapevine.systems import registry
from grapevine.systems.registry import System, all_systems, choose_driver, register, system_named, systems_with
from tests.cli.command import WIDE_AND_PLAIN

ROOT = Path(__file__).parents[2]

EVERYBODY = '''
"""Everybody is linked to everybody: a system of somebody else's, in one module."""

from dataclasses import dataclass

import numpy as np

from grapevine.model.config import Config, parameter
from grapevine.systems.contracts.rounds import Delivery, RoundSystem
from grapevine.systems.registry import System


@dataclass(frozen=True, slots=True, kw_only=True)
class EverybodyConfig(Config):
    """No choice to make."""

    sample_size: int = parameter(1, "nobody needs a sample", source="this test", low=1)


class Everybody(RoundSystem):
    """Everybody on a network."""

    config_type = EverybodyConfig

    def row_sizes(self):
        return np.full(self.network.size, self.network.size - 1, np.int64)

    def slot_kinds(self, size):
        return ["all"] * size

    def round(self):
        size, views = self.network.size, self.network.views
        for node in range(size):
            views.links[views.starts[node] : views.starts[node + 1]] = [n for n in range(size) if n != node]
        views.heard[:] = self.network.now
        self.network.links_changed()

    def delivery(self) -> Delivery:
        return self.flooding()


SYSTEM = System(name="everybody", paper="nobody, 2026", summary="everybody is linked to everybody", rounds=Everybody)
'''


def install(site: Path, name: str, module: str) -> None:
    """A distribution of one module, as pip would unpack its wheel."""
    info = site / f"{name}-1.0.dist-info"
    info.mkdir(parents=True)
    (site / f"{name}.py").write_text(module)
    (info / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {name}\nVersion: 1.0\n")
    (info / "entry_points.txt").write_text(f"[{registry.ENTRY_POINTS}]\n{name} = {name}:SYSTEM\n")


SIMULATE_AND_ASK = """
from grapevine import simulate
from grapevine.cli.console import one_line_errors
from grapevine.cli.main import app
from grapevine.synthetic import generate
done = simulate("everybody", generate("vitis-high", nodes=40, topics=8, subscriptions_per_node=4, buckets=2), rounds=2)
print(done.summary["hit_ratio"], done.summary["degree"], flush=True)
app(["systems"], standalone_mode=False)
with one_line_errors():
    app(["systems", "unwell"])
"""


def test_a_system_of_another_distribution_is_simulated_and_a_broken_one_harms_nobody(tmp_path: Path) -> None:
    """In another process, which finds what is installed in a folder of ours."""
    install(tmp_path, "everybody", EVERYBODY)
    install(tmp_path, "unwell", "import nothing_of_this_name")
    path = os.pathsep.join([str(tmp_path), *filter(None, [os.environ.get("PYTHONPATH")])])
    environment = os.environ | WIDE_AND_PLAIN | {"PYTHONPATH": path}
    line = [sys.executable, "-c", SIMULATE_AND_ASK]
    done = subprocess.run(line, env=environment, capture_output=True, text=True, check=False)
    assert done.stdout.split()[:2] == ["1.0", "39.0"], done.stderr
    assert "everybody is linked to everybody" in done.stdout and "unwell could not be loaded" in done.stderr
    assert done.returncode == 2 and "could not be loaded (ModuleNotFoundError" in done.stderr.splitlines()[-1]


def test_a_name_leads_to_one_system_with_its_facets() -> None:
    vitis = system_named("vitis")
    assert list(vitis.facets) == ["rounds", "peers", "live"] and vitis.drivers == ["rounds", "peers"]
    assert system_named("rappel").drivers == ["peers"]
    assert {"rappel", "spidercast", "vitis"} <= set(systems_with("live"))


def test_every_system_says_where_it_comes_from() -> None:
    for name, system in all_systems().items():
        assert system.name == name and len(system.paper) > 10 and len(system.summary) > 10
        assert system.drivers


@pytest.mark.parametrize(
    ("system", "driver", "expected"),
    [("vitis", None, "rounds"), ("vitis", "peers", "peers"), ("scribe", None, "peers")],
)
def test_the_first_driver_is_the_default(system: str, driver: str | None, expected: str) -> None:
    assert choose_driver(system, driver) == expected


def test_a_driver_that_a_system_lacks_is_answered_with_those_it_has() -> None:
    with pytest.raises(UsageError, match=r"driver of rvr 'peers': choose one of rounds"):
        choose_driver("rvr", "peers")
    with pytest.raises(UsageError, match=r"driver of vitis 'live': choose one of rounds, peers"):
        choose_driver("vitis", "live")
    with pytest.raises(UsageError, match=r"system 'vitis-peers': choose one of .*vitis"):
        choose_driver("vitis-peers", None)


def test_a_system_says_what_it_knows_of_the_whole_network() -> None:
    needy = {name for name, system in all_systems().items() if system.needs}
    assert {"gm", "lowoda", "minmax-oda", "omen", "ring-per-topic", "spidercast"} <= needy
    assert not {"vitis", "rvr", "opt", "magnet", "rappel", "scribe"} & needy
    assert system_named("gm").needs.startswith("a centre that knows everybody")


def test_two_systems_cannot_have_one_name() -> None:
    vitis = system_named("vitis")
    assert register(vitis) is vitis  # the same one, once more
    with pytest.raises(UsageError, match="there is one of this name already"):
        register(System(name="vitis", paper="somebody else", summary="something else", rounds=vitis.rounds))


def test_a_program_brings_a_system_and_may_bring_it_anew(monkeypatch: pytest.MonkeyPatch) -> None:
    """As in a notebook, where a cell is run again after an edit; whoever takes the name of another is refused."""
    monkeypatch.setattr(registry, "_registered", dict(all_systems()))
    cell = EVERYBODY + "from grapevine.systems.registry import register\nregister(SYSTEM)\n"

    def run(text: str, module: str) -> Any:
        names: dict[str, Any] = {"__name__": module}
        exec(compile(text, "cell", "exec", dont_inherit=True), names)
        return names["SYSTEM"]

    first = run(cell, "__main__")
    assert system_named("everybody") is first
    second = run(cell.replace("nobody, 2026", "nobody, 2027"), "__main__")
    assert system_named("everybody") is second and second.rounds is not first.rounds
    with pytest.raises(UsageError, match=r"there is one of this name already \(nobody, 2027\)"):
        run(cell, "elsewhere")


def test_a_system_without_facets_is_refused() -> None:
    with pytest.raises(UsageError, match="has no facets"):
        register(System(name="empty", paper="nobody", summary="nothing"))
    assert "empty" not in all_systems()


def test_the_import_contract_names_every_system() -> None:
    contracts = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["importlinter"]["contracts"]
    named = next(contract["modules"] for contract in contracts if contract["type"] == "independence")
    packages = {
        folder.name for folder in (ROOT / "src/grapevine/systems").iterdir() if (folder / "__init__.py").exists()
    }
    assert {name.rpartition(".")[2] for name in named} == packages - {
        "contracts",
        "gossip",
    }  # what systems have in common


def test_systems_come_by_name_whichever_was_imported_first() -> None:
    program = (
        "import grapevine.systems.vitis; from grapevine.systems.registry import all_systems; print(*all_systems())"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert done.stdout.split() == sorted(done.stdout.split()) and "vitis" in done.stdout.split()
