"""SpiderCast's own rules, for rounds and peers alike; those of its rivals, too, are in blocks/consent and coverage."""

from __future__ import annotations

from typing import Any

MOST_RANDOM = 4  # §3.3.1: K_r is raised while it is 3 or less


def has_few_links(greedy: Any, random: Any, degree: Any, topics: Any) -> Any:
    """§3.3.1: whether a node that has reached its coverage (K_g, K_r) wants one random neighbour a topic more.

    It does when it has no more than K_g neighbours by the greedy task alone; later, up to `MOST_RANDOM`, while it has
    fewer neighbours than topics. Of one node as numbers, or of all as arrays.
    """
    return ((random == 0) & (degree == greedy)) | ((random > 0) & (random < MOST_RANDOM) & (degree < topics))
