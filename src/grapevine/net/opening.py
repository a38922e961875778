"""What applications give to `Node.open`, checked before anything is opened: each mistake is a UsageError of one
sentence."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from grapevine.model import arguments
from grapevine.model.config import field_types
from grapevine.model.errors import UsageError
from grapevine.model.settings import make
from grapevine.net.config import NodeConfig
from grapevine.net.event_file import Retention
from grapevine.net.live_system import live_facet


def check_opening(given: Mapping[str, Any]) -> None:
    """Arguments of `Node.open` by name, those that are there: paths, texts, a retention, dicts and a transport."""
    arguments.text("network", given["network"])
    for name in ("data_dir", "diary"):
        if given[name] is not None:
            arguments.path(name, given[name])
    if given["announce"] is not None:
        arguments.text("announce", given["announce"])
    if given["retention"] is not None:
        cure = "e.g. grapevine.net.event_file.Retention(age_s=86_400)"
        arguments.of_kind("retention", given["retention"], Retention, cure)
    if given["parameters"] is not None:
        arguments.mapping("parameters", given["parameters"], "{'table_size': 20}")
    if given["validators"] is not None:
        for topic, validator in arguments.mapping("validators", given["validators"], "{'news': is_short}").items():
            arguments.text("a topic of validators", topic)
            arguments.function(f"validators[{topic!r}]", validator, "an event")
    if given["transport"] is not None:
        arguments.function("transport", given["transport"], "an identity and a config, such as TlsTransport")


def node_config(system: str, settings: Mapping[str, Any], beside: Iterable[str]) -> NodeConfig:
    """The settings of a node; `beside` are the names of what else `Node.open` takes, one of which may be meant."""
    own, known = field_types(live_facet(system).config_type), field_types(NodeConfig)
    if misplaced := [name for name in settings if name in own and name not in known]:
        example = f"parameters={{{misplaced[0]!r}: {settings[misplaced[0]]!r}}}"
        raise UsageError(f"{', '.join(misplaced)}: set {system}, not the node; give {example}")
    return make(NodeConfig, settings, owner="a node", beside=beside)
