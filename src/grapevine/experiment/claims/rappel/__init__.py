"""The claims of Rappel (Patel et al. 2009), by what they speak of."""

from grapevine.experiment.claims.rappel import friends, traffic, trees

__all__ = ["friends", "traffic", "trees"]
