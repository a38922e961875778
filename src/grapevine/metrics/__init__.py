"""Arrays in, numbers out: each measure is defined here once, for simulations, live runs and the pipeline alike.

Importing the package fills the catalogue with all metrics.
"""

from grapevine.metrics import course, findings, live, own, structure, timed, traffic

__all__ = ["course", "findings", "live", "own", "structure", "timed", "traffic"]
