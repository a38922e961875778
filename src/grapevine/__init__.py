"""Grapevine: brokerless, topic-based publish/subscribe, simulated, run live and compared on real traces."""

from grapevine.model.errors import GrapevineError, UsageError
from grapevine.model.workload import Workload
from grapevine.sim.result import Simulation
from grapevine.sim.simulate import simulate

__version__ = "0.2.0"

__all__ = ["GrapevineError", "Simulation", "UsageError", "Workload", "__version__", "simulate"]
