"""The few faults that matter: of a schedule that breaks a promise, others are left out while it still does.

Halves are tried first, then smaller parts, then faults one by one (the rule of delta debugging, Zeller and Hildebrandt
2002). What is left need not be the smallest set, but none of its faults can be left out alone. A run counts as failing
if it breaks one of the promises that the first run broke: another failure is another story.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from grapevine.net.torture.run import Change, Outcome, run_seed
from grapevine.net.torture.schedule import Fault, Settings


def shrunk(
    outcome: Outcome,
    settings: Settings,
    *,
    most_runs: int = 100,
    change: Change | None = None,
    tell: Callable[[int, int], None] | None = None,
) -> Outcome:
    """The outcome of the fewest faults found with which the seed still fails; `outcome` itself if none can go.

    `tell` is called after every run with the number of runs so far and of faults that are left.
    """
    promises = {violation.promise for violation in outcome.violations}
    best, runs = outcome, 0

    def fails(faults: Sequence[Fault]) -> bool:
        nonlocal best, runs
        runs += 1
        tried = run_seed(outcome.seed, settings, faults=faults, change=change)
        is_same = any(violation.promise in promises for violation in tried.violations)
        if is_same:
            best = tried
        if tell is not None:
            tell(runs, len(best.faults))
        return is_same

    parts = 1  # the first attempt leaves all faults out
    while best.faults and runs < most_runs:
        left = _first_that_fails(best.faults, parts, fails, lambda: runs < most_runs)
        if left:
            parts = max(1, parts - 1)
        elif parts >= len(best.faults):
            break
        else:
            parts = min(2 * parts, len(best.faults))
    return best


def _first_that_fails(
    faults: Sequence[Fault], parts: int, fails: Callable[[Sequence[Fault]], bool], may_go_on: Callable[[], bool]
) -> bool:
    """Leave out one of so many parts after the other; whether one of them did not matter."""
    size = -(-len(faults) // parts)
    for first in range(0, len(faults), size):
        if may_go_on() and fails((*faults[:first], *faults[first + size :])):
            return True
    return False
