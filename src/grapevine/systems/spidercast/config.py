"""Parameters of SpiderCast."""

from __future__ import annotations

from dataclasses import dataclass

from grapevine.model.config import parameter
from grapevine.systems.contracts.configs import ConnectionConfig, ConnectionRules


@dataclass(frozen=True, kw_only=True)  # no slots, so that a config can also have ConnectionConfig as a base
class SpiderCastRules(ConnectionRules):
    """Parameters of SpiderCast's rules, whoever plays them."""

    greedy_coverage: int = parameter(
        3, "neighbours wanted for each topic by the greedy task (K_g)", source="SpiderCast §3.3: 3", low=0, high=100
    )
    random_coverage: int = parameter(
        0,
        "neighbours wanted for each topic by the random task (K_r)",
        source="SpiderCast §3.3: 0, or 1",
        low=0,
        high=100,
    )
    adaptive: bool = parameter(False, "nodes of few links raise their own K_r", source="SpiderCast §3.3.1")

    def mistakes(self) -> list[str]:
        if self.greedy_coverage == 0 and self.random_coverage == 0:
            return ["greedy_coverage=0, random_coverage=0: nobody would look for neighbours; give one of them"]
        if self.adaptive and self.greedy_coverage == 0:
            return ["adaptive=true: needs greedy_coverage of 1 or more to adapt to"]
        return []


@dataclass(frozen=True, kw_only=True)
class SpiderCastConfig(SpiderCastRules, ConnectionConfig):
    """SpiderCast: every topic covered K_g times by greedily and K_r times by randomly chosen neighbours."""

    most_links: int | None = parameter(
        None,
        "connections that a node has at most, margin included, for one task alone; none: as many as its topics ask for",
        source="ours: L^max grows with the topics of a node (SpiderCast §2.3), so the paper bounds nobody",
        low=5,
        high=100_000,
    )

    def mistakes(self) -> list[str]:
        found = super().mistakes()
        if found or self.most_links is None:
            return found
        said = f"most_links={self.most_links}: "
        if self.most_links <= self.margin:
            return [said + f"margin={self.margin} takes all of it; give a smaller margin"]
        if self.adaptive or (self.greedy_coverage and self.random_coverage):
            return [said + "two tasks would need a bound each; give one coverage, and no adaptive"]
        return []
