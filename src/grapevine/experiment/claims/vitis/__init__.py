"""The claims of Vitis (Rahimian et al. 2011), by what they speak of."""

from grapevine.experiment.claims.vitis import churn, lookups, synthetic, twitter

__all__ = ["churn", "lookups", "synthetic", "twitter"]
