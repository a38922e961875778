"""What the papers claim, beside what was measured: one judge per claim, from the series of its experiments."""

from grapevine.experiment.claims import magnet, omen, rappel, spidercast, vitis
from grapevine.experiment.claims.base import (
    CLAIMS,
    MET,
    NOT_HERE,
    NOT_MET,
    Claim,
    Evidence,
    Finding,
    Judgement,
    judge_all,
)

__all__ = [
    "CLAIMS",
    "MET",
    "NOT_HERE",
    "NOT_MET",
    "Claim",
    "Evidence",
    "Finding",
    "Judgement",
    "judge_all",
    "magnet",
    "omen",
    "rappel",
    "spidercast",
    "vitis",
]
