"""Grapevine: brokerless, topic-based publish/subscribe, simulated, run live and compared on real traces."""

from importlib import import_module
from typing import TYPE_CHECKING, Any

from grapevine.model.errors import GrapevineError, UsageError
from grapevine.model.extras import missing_extra
from grapevine.version import __version__

if TYPE_CHECKING:
    from grapevine.comparison.run import Comparison, compare
    from grapevine.model.workload import Workload
    from grapevine.sim.result import Simulation
    from grapevine.sim.simulate import simulate

__all__ = ["Comparison", "GrapevineError", "Simulation", "UsageError", "Workload", "__version__", "compare", "simulate"]

_HOMES = {  # imported when they are first used: numba alone takes a second, and `grapevine --help` needs none of it
    "Comparison": "grapevine.comparison.run",
    "Simulation": "grapevine.sim.result",
    "Workload": "grapevine.model.workload",
    "compare": "grapevine.comparison.run",
    "simulate": "grapevine.sim.simulate",
}


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    try:
        found = getattr(import_module(_HOMES[name]), name)
    except ModuleNotFoundError as error:
        if sentence := missing_extra(error):
            raise ModuleNotFoundError(f"grapevine.{name} {sentence}", name=error.name) from error
        raise
    globals()[name] = found
    return found
