"""Who comes and goes, and when: a schedule of joins, leaves and crashes by round.

A round stands for one second where an experiment does not say otherwise (no paper gives a period). A trace is played at
`round_s` of its seconds per round, so real traces of weeks fit; the faster, the harder the churn per round.
"""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from grapevine.kernels.rng import priorities
from grapevine.model.errors import UsageError
from grapevine.model.workload import Churn

REJOINS = "same", "new"
_SPREAD, _CHOICE = 201, 202  # the `round` words of these draws


@dataclass(frozen=True, slots=True)
class Change:
    """What happens at the start of one round. Leaving nodes tell their neighbours, crashing ones do not."""

    joins: NDArray[np.int32] = field(default_factory=lambda: np.empty(0, np.int32))
    leaves: NDArray[np.int32] = field(default_factory=lambda: np.empty(0, np.int32))
    crashes: NDArray[np.int32] = field(default_factory=lambda: np.empty(0, np.int32))


@dataclass(frozen=True, slots=True)
class Schedule:
    """Nodes that are there from the beginning, and changes by round."""

    first: NDArray[np.int32]
    changes: dict[int, Change]

    @property
    def last_round(self) -> int:
        """The round of the last change; 0 when there is none."""
        return max(self.changes, default=0)


def everyone(node_count: int) -> Schedule:
    """All nodes start together and stay."""
    return Schedule(np.arange(node_count, dtype=np.int32), {})


def from_sessions(
    churn: Churn,
    node_count: int,
    *,
    round_s: float,
    spread_s: float = 0.0,
    start_s: float = 0.0,
    graceful: bool = False,
    rejoin: str = "same",
    event_rounds: int | None = None,
    events_at_once: int = 1,
    first_round: int = 1,
    seed: int = 1,
) -> Schedule:
    """A recorded or generated churn table as a schedule; node i follows the trace's node i modulo its size.

    `spread_s` moves every session by up to so much, start and end alike: traces that were probed now and then have
    their events in bursts. The first `start_s` seconds of the trace are skipped. With `rejoin="new"` every session is a
    node of its own, so that who comes back does so with another interest (SpiderCast §3.8).

    `event_rounds` plays the order of joins and leaves alone: one of them, or `events_at_once`, every so many rounds,
    the first in `first_round` (OMen's churn rounds, §6). `round_s` then only decides who is there from the start.
    """
    if round_s <= 0:
        raise UsageError(f"round_s={round_s:g}: needs to be more than 0 seconds")
    if event_rounds is None and (events_at_once, first_round) != (1, 1):
        raise UsageError(f"events_at_once={events_at_once}, first_round={first_round}: only count with event_rounds")
    if rejoin not in REJOINS:
        raise UsageError(f"rejoin={rejoin}: choose one of {', '.join(REJOINS)}")
    if rejoin == "new":
        if len(churn.node) > node_count:
            said = f"{len(churn.node)} sessions, each a node of its own, need as many nodes; there are {node_count}"
            raise UsageError(f"rejoin=new: {said}")
        node = which = np.arange(len(churn.node), dtype=np.int32)
    else:
        size = int(churn.node.max()) + 1
        copies = [np.flatnonzero(churn.node + size * copy < node_count) for copy in range(-(-node_count // size))]
        node = np.concatenate([churn.node[which] + size * copy for copy, which in enumerate(copies)]).astype(np.int32)
        which = np.concatenate(copies).astype(np.int32)
    moved = priorities(seed, _SPREAD, len(node)).astype(np.float64) / 2.0**64 * spread_s
    origin = churn.joined_s.min() + start_s
    start = np.maximum(np.ceil((churn.joined_s[which] - origin + moved) / round_s), 0)
    end = np.ceil((churn.left_s[which] - origin + moved) / round_s)
    lasting = end > start
    node, start, end = node[lasting], start[lasting], end[lasting]
    if event_rounds is not None:
        start, end = _in_turn(node, start, end, event_rounds, events_at_once, first_round)
    return _schedule(node, start, end, graceful=graceful)


def _in_turn(
    node: NDArray[np.int32],
    start: NDArray[np.float64],
    end: NDArray[np.float64],
    every: int,
    at_once: int,
    first: int,
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Rounds for joins and leaves in their order, `at_once` of them every so many rounds. At equal times leaves come
    first, as a node's end comes before its next start; both at once are a join, of a node that was there."""
    if min(every, at_once, first) < 1:
        raise UsageError(
            f"event_rounds={every}, events_at_once={at_once}, first_round={first}: need to be 1 or more each"
        )
    count = len(node)
    times, joins = np.concatenate([end, start]), np.repeat([False, True], count)
    happens = np.isfinite(times) & ~(joins & (times <= 0))
    order = np.lexsort((np.tile(node, 2), joins, times))
    order = order[happens[order]]
    rounds = np.where(joins, 0.0, np.inf)
    rounds[order] = first + every * (np.arange(len(order)) // at_once)
    return rounds[count:], rounds[:count]


def _schedule(
    node: NDArray[np.int32], start: NDArray[np.float64], end: NDArray[np.float64], *, graceful: bool
) -> Schedule:
    joins = {int(r): np.unique(node[start == r]) for r in np.unique(start)}
    gone = {int(r): np.unique(node[end == r]) for r in np.unique(end[np.isfinite(end)])}
    first = joins.pop(0, np.empty(0, np.int32))
    return Schedule(
        first,
        {
            r: Change(
                joins=joins.get(r, np.empty(0, np.int32)),
                **{"leaves" if graceful else "crashes": gone.get(r, np.empty(0, np.int32))},
            )
            for r in sorted(joins.keys() | gone.keys())
        },
    )


def share_at(text: str) -> tuple[float, int]:
    """SHARE@ROUND, as mass failures and flash crowds are written."""
    try:
        share, round = text.split("@")
        return float(share), int(round)
    except ValueError:
        raise UsageError(f"{text}: write it as SHARE@ROUND, e.g. 0.3@80") from None


def mass_failure(node_count: int, *, share: float, round: int, seed: int = 1) -> Schedule:
    """A random share of all nodes crashes in one round."""
    return Schedule(np.arange(node_count, dtype=np.int32), {round: Change(crashes=_some(node_count, share, seed))})


def flash_crowd(node_count: int, *, share: float, round: int, seed: int = 1) -> Schedule:
    """A random share of all nodes comes in one round; the others were there from the beginning."""
    late = _some(node_count, share, seed)
    return Schedule(np.setdiff1d(np.arange(node_count, dtype=np.int32), late), {round: Change(joins=late)})


def _some(node_count: int, share: float, seed: int) -> NDArray[np.int32]:
    if not 0 < share < 1:
        raise UsageError(f"share={share:g}: needs to lie between 0 and 1")
    order = np.argsort(priorities(seed, _CHOICE, node_count), kind="stable")
    return np.sort(order[: round_half_up(share * node_count)]).astype(np.int32)


def round_half_up(value: float) -> int:
    """The nearest integer, halves upwards."""
    return int(np.floor(value + 0.5))
