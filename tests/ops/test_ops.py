"""What `ops/` has fits the node: metrics, conditions and options; and the tools that read these files take them."""

from __future__ import annotations

import asyncio
import configparser
import json
import re
import shlex
import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest
import yaml
from prometheus_client import generate_latest
from typer.main import get_command

from grapevine.cli.live import node as node_command
from grapevine.net import Node
from grapevine.net.health import NAMES
from grapevine.net.metrics import registry_of

OPS = Path(__file__).parents[2] / "ops"
ALERTS, DASHBOARD = OPS / "alerts.yml", OPS / "grafana.json"


@pytest.fixture(scope="module")
def exposition() -> str:
    """What a node tells Prometheus."""

    async def told() -> str:
        async with Node.open() as node:
            return generate_latest(registry_of(node)).decode()

    return asyncio.run(told())


def expressions() -> list[str]:
    """Every query of the dashboard and the alerts."""
    panels = json.loads(DASHBOARD.read_text())["panels"]
    rules = [rule for group in yaml.safe_load(ALERTS.read_text())["groups"] for rule in group["rules"]]
    return [target["expr"] for panel in panels for target in panel["targets"]] + [rule["expr"] for rule in rules]


def test_queries_name_metrics_that_a_node_has(exposition: str) -> None:
    named = {name for query in expressions() for name in re.findall(r"\b(?:grapevine|process)_\w+", query)}
    there = {line.split()[2] for line in exposition.splitlines() if line.startswith("# TYPE")}
    assert len(named) > 10 and named <= there


def test_every_metric_of_a_node_is_explained_and_on_the_dashboard_or_an_alert(exposition: str) -> None:
    explained = {
        line.split()[2] for line in exposition.splitlines() if line.startswith("# HELP") and len(line.split()) > 3
    }
    typed = {line.split()[2] for line in exposition.splitlines() if line.startswith("# TYPE")}
    assert explained == typed
    text = " ".join(expressions())
    missing = {name for name in typed if name.startswith("grapevine_") and name not in text}
    assert missing <= {
        "grapevine_node_info",
        "grapevine_connections_total",
        "grapevine_failures_total",
        "grapevine_messages_received_total",
    }


def test_alerts_name_conditions_that_there_are() -> None:
    asked = [
        name for query in expressions() for names in re.findall(r'name=~?"([^"]+)"', query) for name in names.split("|")
    ]
    assert asked and set(asked) <= set(NAMES)


def test_panels_of_the_dashboard_do_not_overlap() -> None:
    places = [panel["gridPos"] for panel in json.loads(DASHBOARD.read_text())["panels"]]
    cells = [
        (x, y) for at in places for x in range(at["x"], at["x"] + at["w"]) for y in range(at["y"], at["y"] + at["h"])
    ]
    assert len(cells) == len(set(cells)) and max(x for x, _ in cells) < 24


def options() -> set[str]:
    """Long options of `grapevine node`."""
    import typer

    app = typer.Typer()
    app.command()(node_command)
    return {option for parameter in get_command(app).params for option in parameter.opts}


def test_commands_of_unit_image_and_compose_file_are_options_of_the_node() -> None:
    unit = configparser.ConfigParser(interpolation=None)
    unit.optionxform = str  # type: ignore[assignment, method-assign]
    unit.read(OPS / "grapevine.service")
    image = (OPS / "Dockerfile").read_text()
    entry = json.loads(re.findall(r"^ENTRYPOINT (.*)$", image, re.MULTILINE)[0])
    services: dict[str, Any] = yaml.safe_load((OPS / "compose.yml").read_text())["services"]
    started = [shlex.split(unit["Service"]["ExecStart"]), entry, *(one["command"] for one in services.values())]
    assert {word for words in started for word in words if word.startswith("--")} <= options()
    for source in re.findall(r"^COPY (.*) \S+$", image, re.MULTILINE):
        assert all((OPS.parent / name).exists() for name in source.split())


def checked(*command: str, given: str | None = None) -> None:
    if shutil.which(command[0]) is None:
        pytest.skip(f"{command[0]} is not installed")
    done = subprocess.run(command, input=given, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr


def test_promtool_takes_the_alerts() -> None:
    checked("promtool", "check", "rules", str(ALERTS))


def test_promtool_finds_metrics_named_by_convention(exposition: str) -> None:
    checked("promtool", "check", "metrics", given=exposition)


def test_hadolint_takes_the_image() -> None:
    checked("hadolint", str(OPS / "Dockerfile"))


def test_systemd_takes_the_unit(tmp_path: Path) -> None:
    unit = (OPS / "grapevine.service").read_text().replace("/opt/grapevine/bin/grapevine", "/bin/true")
    (tmp_path / "grapevine.service").write_text(unit)
    checked("systemd-analyze", "verify", "--man=no", str(tmp_path / "grapevine.service"))
