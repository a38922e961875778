"""SpiderCast over arrays: its two tasks, and how nodes adapt what they want (§3.3.1)."""

from __future__ import annotations

import numpy as np

from grapevine.blocks import connections
from grapevine.blocks.connections import GREEDY, RANDOM
from grapevine.kernels.csr import Columns
from grapevine.systems.contracts.connections import ConnectionSystem
from grapevine.systems.spidercast.config import SpiderCastConfig
from grapevine.systems.spidercast.measures import RANDOM_COVERAGE

MOST_RANDOM = 4  # §3.3.1: K_r is raised while it is 3 or less


class SpiderCast(ConnectionSystem):
    """SpiderCast on a network: a greedy and a random task at every node."""

    config_type = SpiderCastConfig
    config: SpiderCastConfig
    rules = (GREEDY, RANDOM)
    own_findings = (RANDOM_COVERAGE,)

    def wanted(self, rule: int) -> int:
        return self.config.greedy_coverage if rule == GREEDY else self.config.random_coverage

    def most_wanted(self, rule: int) -> int:
        return max(self.wanted(rule), MOST_RANDOM) if rule == RANDOM and self.config.adaptive else self.wanted(rule)

    def adapt(self, online: Columns) -> None:
        """§3.3.1: nodes that are covered by K_g links alone also cover at random, and once more while they have fewer
        links than topics. A node looks at its degree when both tasks have what they want."""
        if not self.config.adaptive:
            return
        network, (greedy, random) = self.network, self.tasks
        total = np.empty(network.size, np.int32)
        connections.count_degrees(greedy.role | random.role, online, self._rows(), total)
        covered = connections.is_covered(greedy, self._rows(), network.profiles)
        covered &= connections.is_covered(random, self._rows(), network.profiles)
        topics = np.diff(network.profiles.starts)
        first = (random.k == 0) & (total == greedy.k)
        again = (random.k > 0) & (random.k < MOST_RANDOM) & (total < topics)
        more = network.alive & covered & (first | again)
        random.k[more] += 1
        random.limit[more] = self.limit(RANDOM, random.k)[more]

    def findings(self) -> dict[str, float]:
        k = self.tasks[1].k[self.network.alive]
        return {RANDOM_COVERAGE.name: float(k.mean())} if len(k) else {}
