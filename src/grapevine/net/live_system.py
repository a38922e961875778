"""From a system's name to what a node needs of it: its live facet, and all messages that may come over a connection."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from grapevine.model.errors import UsageError
from grapevine.model.identity import PeerId
from grapevine.model.settings import make, none_of
from grapevine.net import messages as host_messages
from grapevine.systems.contracts.live import LiveSystem
from grapevine.systems.contracts.peer import messages_in
from grapevine.systems.registry import system_named, systems_with


def live_facet(name: str) -> type[LiveSystem]:
    """The live facet of the system of this name; UsageError if there is no such system, or it does not run live."""
    if name not in systems_with("live"):
        raise UsageError(none_of(name, systems_with("live"), "live system "))
    return system_named(name).live_facet()


def live_system(name: str, parameters: Mapping[str, Any], me: PeerId) -> LiveSystem:
    """The system of this name with these parameters, for the node `me`; UsageError if it does not have them."""
    facet = live_facet(name)
    return facet(name, make(facet.config_type, facet.live_values | dict(parameters), owner=name), me)


def messages_of(system: LiveSystem | type[LiveSystem]) -> Any:
    """The union of the system's messages and the host's own, for a decoder."""
    return system.messages | messages_in(host_messages)
