"""SpiderCast over arrays: its two tasks, and how nodes adapt what they want (§3.3.1)."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from grapevine.blocks import connections
from grapevine.blocks.connections import GREEDY, RANDOM
from grapevine.blocks.network import Network
from grapevine.kernels.csr import Columns
from grapevine.systems.contracts.connections import ConnectionSystem
from grapevine.systems.spidercast.config import SpiderCastConfig
from grapevine.systems.spidercast.measures import RANDOM_COVERAGE
from grapevine.systems.spidercast.rules import MOST_RANDOM, has_few_links


class SpiderCast(ConnectionSystem):
    """SpiderCast on a network: a greedy and a random task at every node.

    `checks` counts, for every node, the coverages that it has reached and checked its degree at (`adapt`).
    """

    config_type = SpiderCastConfig
    config: SpiderCastConfig
    rules = (GREEDY, RANDOM)
    own_findings = (RANDOM_COVERAGE,)

    def __init__(self, config: SpiderCastConfig, network: Network) -> None:
        self.checks = np.zeros(network.size, np.int32)
        super().__init__(config, network)

    def _begin(self, nodes: NDArray[np.int64]) -> None:
        super()._begin(nodes)
        self.checks[nodes] = self.config.random_coverage

    @classmethod
    def within(cls, links: int) -> dict[str, Any]:
        return {"most_links": links}

    def limit(self, rule: int, k: Columns) -> Columns:
        """As in the paper, but with a bound no more than leaves room for the margin: a node accepts up to it."""
        full, most = super().limit(rule, k), self.config.most_links
        return full if most is None else np.minimum(full, most - self.config.margin).astype(np.int32)

    def wanted(self, rule: int) -> int:
        return self.config.greedy_coverage if rule == GREEDY else self.config.random_coverage

    def most_wanted(self, rule: int) -> int:
        return max(self.wanted(rule), MOST_RANDOM) if rule == RANDOM and self.config.adaptive else self.wanted(rule)

    def adapt(self, online: Columns) -> None:
        """§3.3.1: nodes that are covered by K_g links alone also cover at random, and once more while they have fewer
        links than topics.

        A node checks its degree when it reaches a coverage, that is in the first iteration that finds it reached: once
        for the greedy one, and once for every random one after its increment. When it does not raise K_r then, it never
        does, whatever becomes of its degree.
        """
        if not self.config.adaptive:
            return
        network, (greedy, random) = self.network, self.tasks
        total = np.empty(network.size, np.int32)
        connections.count_degrees(greedy.role | random.role, online, self._rows(), total)
        has_greedy, has_random = (connections.is_covered(task, self._rows(), network.profiles) for task in self.tasks)
        topics = np.diff(network.profiles.starts)
        checking = network.alive & has_greedy & has_random & (self.checks == random.k)
        self.checks[checking] += 1
        more = checking & has_few_links(greedy.k, random.k, total, topics)
        random.k[more] += 1
        random.limit[more] = self.limit(RANDOM, random.k)[more]

    def findings(self) -> dict[str, float]:
        k = self.tasks[1].k[self.network.alive]
        return {RANDOM_COVERAGE.name: float(k.mean())} if len(k) else {}
