"""Rappel's claims about traffic: relays beside Scribe's, messages and bytes (§6.4, §6.5)."""

from __future__ import annotations

from grapevine.experiment.claims.base import (
    Evidence,
    Finding,
    claim,
    graded,
    listed,
    met_if,
)
from grapevine.metrics.timed import (
    DELAY_MS_AT,
    LOAD_CORRELATION,
    MESSAGES_PER_S_AT,
    MESSAGES_PER_SUBSCRIPTION,
)
from grapevine.metrics.traffic import RELAYS_PER_EVENT
from grapevine.systems.contracts.trees import MESSAGES_AT_HEIGHT
from grapevine.systems.rappel.measures import (
    MESSAGE_BYTES,
)


@claim(
    "R7",
    "Fig. 10",
    "500 of 5,001 subscribe: Rappel has no uninterested relays, Scribe about 40; Rappel is a little slower",
    "exactly 0; direction",
    "rappel_fig10",
    "rappel_fig10_planetlab",
    "rappel_fig10_feeds",
)
def _(evidence: Evidence) -> Finding:
    """§6.4: Rappel is noiseless, Scribe needs 40 uninterested nodes, and Rappel is slower (Fig. 10a).

    That load follows subscriptions in Rappel and not in Scribe (Fig. 10b, c) is in the remark.
    """

    def of(experiment: str) -> tuple[bool, str]:
        """Whether the claim holds there, and the numbers."""
        rows = evidence.rows(experiment, RELAYS_PER_EVENT, "rappel", "feed")
        noise, nodes = max(row["mean"] for row in rows), max(row["parameters"]["nodes"] for row in rows)
        relays = evidence.estimate(experiment, RELAYS_PER_EVENT, "scribe", "feed", nodes=nodes)
        rappel, scribe = (
            evidence.estimate(experiment, DELAY_MS_AT.of(quantile="p50"), system, "feed", nodes=nodes)
            for system in ("rappel", "scribe")
        )
        holds = noise == 0 and relays.mean > 0 and scribe.mean < rappel.mean
        return holds, f"relays {noise:.0f} / {relays}, median {rappel} / {scribe} ms"

    (grown, words), (real, there) = of("rappel_fig10"), of("rappel_fig10_planetlab")
    loads = [
        evidence.value("rappel_fig10_feeds", LOAD_CORRELATION, system, "Twitter") for system in ("rappel", "scribe")
    ]
    return met_if(
        grown and real,
        f"{words}; on PlanetLab {there}",
        f"correlation of load and subscriptions on 100 feeds: {listed(loads, 2)}. On PlanetLab 5,001 nodes share 490 "
        f"sites, and everybody has another node of its site in its tables, which nobody else uses",
    )


@claim(
    "R13",
    "Fig. 11b",
    "a subscriber at height 1, which has the highest load, stays mostly under 2 messages a second",
    "≤ 2, under churn",
    "rappel_fig8",
)
def _(evidence: Evidence) -> Finding:
    """§6.5 on Fig. 11b: the traffic at a subscriber that ended at height 1, under churn; we take all of these."""
    rates = [
        evidence.estimate("rappel_fig8", MESSAGES_AT_HEIGHT.of(number=height), "rappel", "churn", nodes=7_201)
        for height in (0, 1, 2, 3)
    ]
    return graded(
        band=rates[1].mean <= 2,
        direction=rates[1].mean > rates[2].mean,
        measured=f"{rates[1]} messages a second; at heights 2 and 3 {rates[2]} / {rates[3]}",
        remark=f"the publisher has {rates[0]}. Each neighbour is pinged twice a minute and answers: with a parent, "
        f"5 children, 6 friends and 12 fans, the most there may be, that is {(1 + 5 + 6 + 12) * 4 / 60:.1f} messages a "
        f"second before any search",
        cause="rappel_fig8",
    )


@claim("R14", "Fig. 11d", "each subscription more costs 0.15 – 0.4 messages a second", "0.15 … 0.4", "rappel_fig9")
def _(evidence: Evidence) -> Finding:
    """§6.5 on Fig. 11d: control messages grow with subscriptions, by this much each; ours is the slope of all nodes."""
    evidence.needs_full_length("while feeds are being joined they cost more")
    slope = evidence.estimate("rappel_fig9", MESSAGES_PER_SUBSCRIPTION, "rappel", "Twitter", friends=6)
    return graded(
        band=0.15 <= slope.mean <= 0.4,
        direction=slope.mean > 0,
        measured=f"{slope} messages a second for each",
        remark="friends that are parents, too, are pinged once for both",
        cause="rappel_fig9",
    )


@claim(
    "R15",
    "§6.5",
    "about 100 bytes a second in the median: 2 messages a second of 50 bytes",
    "≤ 100, ±30 %",
    "rappel_fig8",
    "rappel_fig11",
)
def _(evidence: Evidence) -> Finding:
    """§6.5 and its footnote: messages of 50 bytes, amortised, so that the median load is about 100 bytes a second."""
    rate = evidence.estimate("rappel_fig8", MESSAGES_PER_S_AT.of(quantile="p50"), "rappel", "churn", nodes=7_201)
    size = evidence.estimate("rappel_fig8", MESSAGE_BYTES, "rappel", "churn", nodes=7_201)
    large = evidence.value("rappel_fig11", MESSAGE_BYTES, "rappel", "feed", nodes=10_001)
    return graded(
        band=rate.mean * size.mean <= 1.3 * 100,
        direction=rate.mean < 2,
        measured=f"{rate.mean * size.mean:.0f} bytes a second: {rate} messages of {size} bytes",
        remark=f"messages as live nodes encode them, with addresses of 9 bytes; static, with 10,000 nodes, {large:.0f} "
        f"bytes. What is sent and what is received both count",
        cause="rappel_fig8",
    )
