"""One module per system. A module that registers itself is found here; nothing else has to be edited."""

from importlib import import_module
from pkgutil import iter_modules

from grapevine.systems.base import SYSTEMS, Delivery, System

for _module in sorted(module.name for module in iter_modules(__path__)):
    import_module(f"{__name__}.{_module}")

__all__ = ["SYSTEMS", "Delivery", "System"]
