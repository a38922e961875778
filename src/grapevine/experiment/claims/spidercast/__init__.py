"""The claims of SpiderCast (Chockler et al. 2007), in the order of their ids."""

from grapevine.experiment.claims.spidercast import at_rest, in_motion, stated

__all__ = ["at_rest", "in_motion", "stated"]
