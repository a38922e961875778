"""Who comes and goes, and when: a schedule of joins, leaves and crashes by round.

A round stands for one second where an experiment does not say otherwise (no paper gives a period). A trace is played at
`round_s` of its seconds per round, so real traces of weeks fit; the faster, the harder the churn per round.

`ChurnConfig` is all that can be said about this: the options of `grapevine simulate` are made from it, and the `churn`
tables of experiments are checked against it.
"""

from __future__ import annotations

from dataclasses import dataclass, field, fields

import numpy as np
from numpy.typing import ArrayLike, NDArray

from grapevine.kernels.rng import priorities
from grapevine.model import arguments, array_arguments
from grapevine.model.config import Config, parameter
from grapevine.model.errors import UsageError
from grapevine.model.workload import Churn

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


def checked_schedule(schedule: Schedule, node_count: int) -> Schedule:
    """A schedule from Python as engines take it; UsageError unless it names rounds from 1 on, and nodes of a workload
    with so many."""

    def nodes(of: str, names: ArrayLike) -> NDArray[np.int32]:
        return array_arguments.numbers_below(f"schedule.{of}", names, node_count)

    changes = {}
    for round, given in arguments.mapping("schedule.changes", schedule.changes, "{80: Change(crashes=…)}").items():
        at = arguments.whole("a round of schedule.changes", round, low=1)
        change = arguments.of_kind(f"schedule.changes[{at}]", given, Change)
        parts = ((field.name, getattr(change, field.name)) for field in fields(change))
        changes[at] = Change(**{name: nodes(f"changes[{at}].{name}", part) for name, part in parts})
    return Schedule(nodes("first", schedule.first), changes)


def everyone(node_count: int) -> Schedule:
    """All nodes start together and stay."""
    return Schedule(np.arange(node_count, dtype=np.int32), {})


@dataclass(frozen=True, slots=True, kw_only=True)
class ChurnConfig(Config):
    """How sessions become rounds; or, without sessions, a mass failure or a flash crowd.

    `event_rounds` plays the order of joins and leaves alone; `round_s` then only decides who is there from the start.
    """

    round_s: float = parameter(
        1.0, "seconds of the churn trace per round", source="ours: no paper gives a period", low=0.001
    )
    spread_s: float = parameter(
        0.0,
        "seconds that each session is moved by at most, start and end alike",
        source="ours: undoes the bursts of traces that were probed now and then",
        low=0,
    )
    start_s: float = parameter(0.0, "seconds of the churn trace that are skipped", source="ours", low=0)
    rejoin: str = parameter(
        "same",
        "who comes back: the same node, or another one with another interest",
        source="SpiderCast §3.8: new",
        choices=("same", "new"),
    )
    graceful: bool = parameter(
        False, "nodes of the churn trace say goodbye before they leave", source="SpiderCast §2.4: LEAVE"
    )
    event_rounds: int | None = parameter(
        None,
        "play the order of the churn trace alone, one join or leave every so many rounds",
        source="OMen §6: churn rounds",
        low=1,
    )
    events_at_once: int = parameter(1, "with event_rounds: so many joins and leaves together", source="OMen §5", low=1)
    first_round: int = parameter(1, "with event_rounds: the round of the first", source="ours", low=1)
    crash: str | None = parameter(
        None, "SHARE@ROUND, a mass failure: so many of all nodes crash in one round, e.g. 0.3@80", source="ours"
    )
    crowd: str | None = parameter(
        None, "SHARE@ROUND, a flash crowd: so many of all nodes come in one round, e.g. 0.5@80", source="ours"
    )

    def mistakes(self) -> list[str]:
        found = []
        if self.event_rounds is None and (self.events_at_once, self.first_round) != (1, 1):
            said = "only count with event_rounds"
            found.append(f"events_at_once={self.events_at_once}, first_round={self.first_round}: {said}")
        sudden = {"crash": self.crash, "crowd": self.crowd}
        given = {name: text for name, text in sudden.items() if text is not None}
        found += [wrong for name, text in given.items() if (wrong := _share_mistake(name, text))]
        if len(given) > 1:
            found.append(f"crash={self.crash}, crowd={self.crowd}: give one of them")
        if given and self.playing():
            names = ", ".join(self.playing())
            found.append(f"{', '.join(given)}: need no churn trace, so there is nothing that {names} could say")
        return found

    def playing(self) -> list[str]:
        """The fields that say how sessions are played and differ from their defaults."""
        plain = {field.name: field.default for field in fields(self) if field.name not in ("crash", "crowd")}
        return [name for name, default in plain.items() if getattr(self, name) != default]


def make_schedule(
    config: ChurnConfig, node_count: int, sessions: Churn | None = None, *, seed: int = 1
) -> Schedule | None:
    """The schedule that the config, with the sessions of a trace if there are any, asks for; None if nobody comes or
    goes.

    UsageError if the config says how a trace is played and there is none, or asks for a mass failure besides.
    """
    sudden = config.crash or config.crowd
    if sessions is not None:
        if sudden:
            raise UsageError(f"{sudden}: a churn trace, a crash and a crowd are three schedules; give one of them")
        return from_sessions(sessions, node_count, config, seed)
    if playing := config.playing():
        raise UsageError(f"{', '.join(playing)}: say how a churn trace is played; give one, too")
    if sudden is None:
        return None
    share, round = share_at(sudden)
    return (mass_failure if config.crash else flash_crowd)(node_count, share=share, round=round, seed=seed)


def from_sessions(churn: Churn, node_count: int, config: ChurnConfig, seed: int = 1) -> Schedule:
    """A recorded or generated churn table as a schedule; node i follows the trace's node i modulo its size.

    With `rejoin="new"` every session is a node of its own; UsageError if there are more sessions than nodes.
    """
    which, node = _players(churn, node_count, config.rejoin)
    moved = priorities(seed, _SPREAD, len(node)).astype(np.float64) / 2.0**64 * config.spread_s
    origin = churn.joined_s.min() + config.start_s
    start = np.maximum(np.ceil((churn.joined_s[which] - origin + moved) / config.round_s), 0)
    end = np.ceil((churn.left_s[which] - origin + moved) / config.round_s)
    lasting = end > start
    node, start, end = node[lasting], start[lasting], end[lasting]
    if config.event_rounds is not None:
        start, end = _in_turn(node, start, end, config.event_rounds, config.events_at_once, config.first_round)
    return _schedule(node, start, end, graceful=config.graceful)


def _players(churn: Churn, node_count: int, rejoin: str) -> tuple[NDArray[np.int32], NDArray[np.int32]]:
    """Sessions by their row in the table, with repetitions, and the nodes that play them."""
    if rejoin == "new":
        if len(churn.node) > node_count:
            said = f"{len(churn.node)} sessions, each a node of its own, need as many nodes; there are {node_count}"
            raise UsageError(f"rejoin=new: {said}")
        every = np.arange(len(churn.node), dtype=np.int32)
        return every, every
    size = int(churn.node.max()) + 1
    copies = [np.flatnonzero(churn.node + size * copy < node_count) for copy in range(-(-node_count // size))]
    node = np.concatenate([churn.node[which] + size * copy for copy, which in enumerate(copies)])
    return np.concatenate(copies).astype(np.int32), node.astype(np.int32)


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


def _share_mistake(name: str, text: str) -> str | None:
    try:
        share, round = share_at(text)
    except UsageError as error:
        return f"{name}={error}"
    if 0 < share < 1 and round >= 1:
        return None
    return f"{name}={text}: needs a share between 0 and 1, and a round of 1 or more"


def mass_failure(node_count: int, *, share: float, round: int, seed: int = 1) -> Schedule:
    """A random share of all nodes crashes in one round."""
    round = arguments.whole("round", round, low=1)
    return Schedule(np.arange(node_count, dtype=np.int32), {round: Change(crashes=_some(node_count, share, seed))})


def flash_crowd(node_count: int, *, share: float, round: int, seed: int = 1) -> Schedule:
    """A random share of all nodes comes in one round; the others were there from the beginning."""
    round = arguments.whole("round", round, low=1)
    late = _some(node_count, share, seed)
    return Schedule(np.setdiff1d(np.arange(node_count, dtype=np.int32), late), {round: Change(joins=late)})


def _some(node_count: int, share: float, seed: int) -> NDArray[np.int32]:
    if not 0 < arguments.amount("share", share) < 1:
        raise UsageError(f"share={share:g}: needs to lie between 0 and 1")
    order = np.argsort(priorities(seed, _CHOICE, node_count), kind="stable")
    return np.sort(order[: round_half_up(share * node_count)]).astype(np.int32)


def round_half_up(value: float) -> int:
    """The nearest integer, halves upwards."""
    return int(np.floor(value + 0.5))
