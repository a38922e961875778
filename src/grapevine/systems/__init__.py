"""One module per system. A module that registers itself is found here; nothing else has to be edited."""

from importlib import import_module
from pkgutil import iter_modules
from typing import Any

from grapevine.systems.base import SYSTEMS, Delivery, System
from grapevine.systems.peer import PEER_SYSTEMS, PeerSystem

for _module in sorted(module.name for module in iter_modules(__path__)):
    import_module(f"{__name__}.{_module}")


def all_systems() -> dict[str, type[System] | type[PeerSystem[Any]]]:
    """Systems that run by rounds, and those of peers in virtual time, by name."""
    return {**SYSTEMS, **PEER_SYSTEMS}


__all__ = ["PEER_SYSTEMS", "SYSTEMS", "Delivery", "PeerSystem", "System", "all_systems"]
