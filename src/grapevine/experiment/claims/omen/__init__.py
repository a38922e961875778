"""The claims of OMen (Chen, Vitenberg & Jacobsen 2016), by what they speak of.

Where a coordinator's sight decides (what it counts as connected, docs/papers.md#omen), all three are measured and
shown; the default of the system is judged.
"""

from grapevine.experiment.claims.omen import backups, overlay, repairs

__all__ = ["backups", "overlay", "repairs"]
