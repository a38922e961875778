"""Grapevine: brokerless, topic-based publish/subscribe, simulated, run live and compared on real traces."""

from grapevine.model.errors import GrapevineError, UsageError
from grapevine.model.workload import Workload

__version__ = "0.1.0"

__all__ = ["GrapevineError", "UsageError", "Workload", "__version__"]
