"""Arrays in, numbers out: each measure is defined here once, for simulations, live runs and the pipeline alike.

Importing the package fills the catalogue with all common metrics; systems add their own when they are registered.
"""

from grapevine.metrics import course, findings, live, structure, timed, traffic

__all__ = ["course", "findings", "live", "structure", "timed", "traffic"]
