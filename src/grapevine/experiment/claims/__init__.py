"""What the papers claim, beside what was measured: one judge per claim, from the series of its experiments."""

from grapevine.experiment.claims import magnet, omen, rappel, spidercast, vitis
from grapevine.experiment.claims.base import (
    CLAIMS,
    Claim,
    Effort,
    Evidence,
    Finding,
    Grade,
    Judgement,
    judge_all,
)

__all__ = [
    "CLAIMS",
    "Claim",
    "Effort",
    "Evidence",
    "Finding",
    "Grade",
    "Judgement",
    "judge_all",
    "magnet",
    "omen",
    "rappel",
    "spidercast",
    "vitis",
]
