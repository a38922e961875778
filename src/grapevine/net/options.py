"""How a node is started: flags and `node.toml`, checked together, so that every mistake is told at once.

listen = "127.0.0.1:7000"
join = ["10.0.0.1:7000"]
subscribe = ["weather/oslo"]
system = "vitis"
data_dir = "node-1"
log = "json"    # lines for programs on the error stream; plain: for people

[settings]      # of NodeConfig
most_connections = 100
[parameters]    # of the system
table_size = 20
[retention]
age_s = 86400
[door]          # of DoorConfig, for clients of MQTT
mqtt_users = "users"
"""

from __future__ import annotations

import tomllib
from collections.abc import Mapping
from dataclasses import dataclass, field, fields, replace
from pathlib import Path
from typing import Any

from grapevine.model.config import Config, field_types
from grapevine.model.errors import UsageError
from grapevine.model.log import LOG_LEVELS, LOGS
from grapevine.model.settings import check_values, none_of, parse_texts, unknown_names, with_none
from grapevine.net.config import NodeConfig
from grapevine.net.contacts import parse_endpoint, parse_endpoints
from grapevine.net.control_file import UNIX
from grapevine.net.doors.mqtt.config import DoorConfig
from grapevine.net.live_system import live_facet
from grapevine.net.retention import Retention
from grapevine.systems.registry import systems_with

_TABLES = ("settings", "parameters", "retention", "door")


@dataclass(frozen=True, slots=True, kw_only=True)
class NodeOptions:
    """Everything about a node that runs as a process."""

    listen: str = "127.0.0.1:0"
    join: list[str] = field(default_factory=list)
    subscribe: list[str] = field(default_factory=list)
    system: str = "vitis"
    network: str = "grapevine"
    data_dir: str | None = None
    announce: str | None = None
    diary: str | None = None
    control: str = "127.0.0.1:0"
    control_file: str | None = None
    mqtt: str | None = None
    origin: list[str] = field(default_factory=list)
    log: str = "plain"
    log_level: str = "info"
    settings: dict[str, Any] = field(default_factory=dict)
    parameters: dict[str, Any] = field(default_factory=dict)
    retention: dict[str, Any] = field(default_factory=dict)
    door: dict[str, Any] = field(default_factory=dict)


def read_options(file: Path | None, flags: Mapping[str, Any], sets: list[str]) -> NodeOptions:
    """Options of a file, overruled by flags and by `key=value` texts; UsageError with all that is wrong."""
    content, mistakes = _read(file)
    known = [option.name for option in fields(NodeOptions)]
    mistakes += unknown_names(str(file), content, known, noun="key")
    chosen = {key: value for key, value in content.items() if key in known and key not in _TABLES}
    mistakes += [f"{file}: {text}" for key, value in chosen.items() if (text := _shape_mistake(key, value))]
    if mistakes:
        raise UsageError("; ".join(sorted(mistakes)))
    chosen |= {key: value for key, value in flags.items() if value is not None}
    options = NodeOptions(**chosen)
    mistakes = _mistakes(options)
    configs = configs_of(options.system)
    tables: dict[str, dict[str, Any]] = {name: {} for name in _TABLES}
    for name in _TABLES:
        config, table = configs.get(name), content.get(name, {})
        if not isinstance(table, dict):
            mistakes.append(f"{file}: {name}: write it as a table, [{name}]")
        elif config is not None:
            tables[name], wrong = check_values(config, with_none(config, table), owner=f"[{name}]")
            mistakes += [f"{file}: {mistake}" for mistake in wrong]
    mistakes += take_settings(configs, sets, tables)
    for name, config in configs.items():
        try:
            config(**tables[name])
        except UsageError as error:
            mistakes.append(str(error))
    if mistakes:
        raise UsageError("; ".join(mistakes))
    return replace(options, **tables)  # type: ignore[arg-type]  # the tables are four of its fields


def configs_of(system: str) -> dict[str, type[Config]]:
    """What can be set, by the table that it stands in."""
    configs: dict[str, type[Config]] = {"settings": NodeConfig, "retention": Retention, "door": DoorConfig}
    if system in systems_with("live"):
        configs["parameters"] = live_facet(system).config_type
    return configs


def take_settings(configs: Mapping[str, type[Config]], sets: list[str], tables: dict[str, dict[str, Any]]) -> list[str]:
    """Sort `key=value` texts into the tables whose config has such a field; a sentence for each that is a mistake."""
    values, mistakes = parse_texts(sets, *configs.values(), owner="a node")
    for name, config in configs.items():
        tables[name] |= {key: value for key, value in values.items() if key in field_types(config)}
    return mistakes


def _read(file: Path | None) -> tuple[dict[str, Any], list[str]]:
    if file is None:
        return {}, []
    try:
        return tomllib.loads(file.read_text()), []
    except OSError as error:
        return {}, [f"{file}: cannot be read ({error.strerror})"]
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        return {}, [f"{file}: is no TOML ({error})"]


def _shape_mistake(key: str, value: Any) -> str | None:
    if key in ("join", "subscribe", "origin"):
        if isinstance(value, list) and all(isinstance(part, str) for part in value):
            return None
        return f'{key}={value!r}: write a list of texts, e.g. {key} = ["…"]'
    return None if isinstance(value, str) else f'{key}={value!r}: write a text, e.g. {key} = "…"'


def _mistakes(options: NodeOptions) -> list[str]:
    mistakes = []
    if options.system not in systems_with("live"):
        mistakes.append(none_of(options.system, systems_with("live"), "system="))
    if options.log not in LOGS:
        mistakes.append(none_of(options.log, LOGS, "log="))
    if options.log_level not in LOG_LEVELS:
        mistakes.append(none_of(options.log_level, LOG_LEVELS, "log_level="))
    endpoints = [options.listen] + ([] if options.control.startswith(UNIX) else [options.control])
    endpoints += [] if options.mqtt is None else [options.mqtt]
    for check, texts in ((parse_endpoint, endpoints), (_parse_joined, options.join)):
        for text in texts:
            try:
                check(text)
            except UsageError as error:
                mistakes.append(str(error))
    if any(not topic for topic in options.subscribe):
        mistakes.append("subscribe='': a topic needs a name")
    return mistakes


def _parse_joined(text: str) -> object:
    return parse_endpoints([text])
