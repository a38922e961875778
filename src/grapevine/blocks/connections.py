"""Connections that two nodes agree on: SpiderCast's neighbour maintenance (Figs. 2 and 4) as one synchronous round.

A node may run several tasks (greedy, random, …), each with its own set of neighbours, target and messages. A link that
serves two tasks is one connection: `roles` has a bit per task for every slot of the nodes' tables.

In a round every node does one iteration of MAINTAINNEIGHBORS from the state at its start, sending one message at most.
Messages reach their receivers in random order and are answered one by one; answers are handled before the round ends.
Degrees and targets of neighbours are those of the last heartbeat, at the start of the round; a neighbour that crashed
and is not yet missed counts as a node without links.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from grapevine.blocks import coverage
from grapevine.blocks.coverage import Gains, Membership, Need, holds
from grapevine.blocks.profiles import Profiles
from grapevine.blocks.views import ARRIVAL, CONNECT_TIES, DISCONNECT_TIES, NOBODY, REDIRECT_TIES
from grapevine.kernels.csr import Columns, Starts
from grapevine.kernels.jit import njit
from grapevine.kernels.rng import absorb, draw

# What a task wants, and whom it asks next.
GREEDY, RANDOM, SIMILAR, STRANGER = range(4)
# Messages.
MESSAGES = "connect", "connect-ok", "redirect", "disconnect", "disconnect-ok", "leave"
NOTHING, CONNECT, CONNECT_OK, REDIRECT, DISCONNECT, DISCONNECT_OK, LEAVE = range(-1, 6)
_NEVER_COVERED = 2**30  # a K that no number of neighbours reaches
_TRIES = 100  # draws for a random node before giving up until the next round


class Rows(NamedTuple):
    """The tables of all nodes: neighbours, when each was last heard, and the tasks that it serves."""

    starts: Starts
    links: Columns
    heard: Columns
    roles: NDArray[np.uint8]


class Task(NamedTuple):
    """One neighbour maintenance task of all nodes (Fig. 1)."""

    role: int  # its bit in `roles`
    rule: int  # GREEDY, RANDOM, SIMILAR or STRANGER
    k: Columns  # per node: wanted neighbours a topic (K); for the last two rules: wanted neighbours
    limit: Columns  # L^max
    target: Columns  # L
    degree: Columns  # neighbours in this task, now
    redirect: Columns  # whom to ask next, because somebody said so
    asked: NDArray[np.int32]  # [node, round modulo its length]: whom it asked lately (quarantine)
    same_order: bool  # everybody breaks ties in the same order instead of at random
    counts_topics: bool  # whether it wants topics covered (GREEDY, RANDOM) or a number of neighbours


class Letters(NamedTuple):
    """What each node sends in this round, and what it is answered."""

    to: Columns
    kind: Columns
    answer: Columns
    told: Columns  # with REDIRECT: whom to ask instead


@njit
def room_for_a_row(rows: Rows) -> Columns:
    """Scratch for the neighbours of any node."""
    most = 0
    for p in range(len(rows.starts) - 1):
        most = max(most, rows.starts[p + 1] - rows.starts[p])
    return np.empty(most, np.int32)


@njit
def neighbours_in(p: int, role: int, rows: Rows, out: Columns) -> Columns:
    """The neighbours of p in one task, into `out`."""
    count = 0
    for at in range(rows.starts[p], rows.starts[p + 1]):
        if rows.links[at] != NOBODY and rows.roles[at] & role:
            out[count] = rows.links[at]
            count += 1
    return out[:count]


@njit
def drop_silent(oldest: int, online: Columns, rows: Rows) -> None:
    """FAILUREDETECTIONSUSPECT: neighbours last heard before the round `oldest` are no longer neighbours."""
    links, heard = rows.links, rows.heard
    for p in online:
        for at in range(rows.starts[p], rows.starts[p + 1]):
            if links[at] != NOBODY and heard[at] < oldest:
                links[at] = NOBODY


@njit
def count_degrees(role: int, online: Columns, rows: Rows, out: Columns) -> None:
    """Neighbours of every node in one task, or in several."""
    links, roles = rows.links, rows.roles
    out[:] = 0
    for p in online:
        count = 0
        for at in range(rows.starts[p], rows.starts[p + 1]):
            count += links[at] != NOBODY and roles[at] & role != 0
        out[p] = count


@njit
def heartbeat(now: int, online: Columns, alive: NDArray[np.bool_], rows: Rows) -> None:
    """Everyone tells its neighbours in which tasks it holds the link; tasks that the other end does not name are over.

    A node that came back from a crash knows nothing of its old links: it is silent on them, however alive.
    """
    links, roles = rows.links, rows.roles
    for p in online:
        for at in range(rows.starts[p], rows.starts[p + 1]):
            q = links[at]
            if q != NOBODY and alive[q]:
                for back in range(rows.starts[q], rows.starts[q + 1]):
                    if links[back] == p and roles[back] & roles[at]:
                        roles[at] &= roles[back]
                        rows.heard[at] = now
                        break


@njit
def arrivals(seed: int, now: int, role: int, senders: NDArray[np.int64]) -> NDArray[np.int64]:
    """The senders in the order in which their messages arrive."""
    order = np.empty(len(senders), np.uint64)
    for i in range(len(senders)):
        order[i] = absorb(draw(seed, now, senders[i], ARRIVAL), role)
    return senders[np.argsort(order)]


@njit
def _is_neighbour(p: int, q: int, role: int, rows: Rows) -> bool:
    for at in range(rows.starts[p], rows.starts[p + 1]):
        if rows.links[at] == q:
            return bool(rows.roles[at] & role)
    return False


@njit
def _add(now: int, p: int, q: int, task: Task, rows: Rows) -> None:
    """q becomes a neighbour of p in this task."""
    place = NOBODY
    for at in range(rows.starts[p], rows.starts[p + 1]):
        if rows.links[at] == q:
            place = at
            break
        if rows.links[at] == NOBODY and place == NOBODY:
            place = at
    if rows.links[place] != q:
        rows.links[place], rows.roles[place] = q, 0
    rows.heard[place] = now
    rows.roles[place] |= np.uint8(task.role)
    task.degree[p] += 1


@njit
def _raise_target(p: int, margin: int, task: Task) -> None:
    """Fig. 4, lines 4-5 and 15-16: the target follows a degree that is Margin above it.

    Printed is `<`. Then every accepted link would raise the target, no neighbour below L^max would ever have more links
    than its target, and over-covered nodes could not disconnect as §2.3 says they do (docs/papers.md#spidercast).
    """
    if task.target[p] < task.limit[p] and task.degree[p] >= task.target[p] + margin:
        task.target[p] += 1


@njit
def _remove(p: int, q: int, task: Task, rows: Rows) -> None:
    """REMOVECONNECTION in this task; the link goes when no other task needs it."""
    for at in range(rows.starts[p], rows.starts[p + 1]):
        if rows.links[at] == q and rows.roles[at] & task.role:
            rows.roles[at] &= np.uint8(255 - task.role)
            task.degree[p] -= 1
            if rows.roles[at] == 0:
                rows.links[at] = NOBODY
            return


@njit
def _lay(p: int, neighbours: Columns, task: Task, profiles: Profiles, need: Need) -> None:
    """The need of p for the task's rule.

    Tasks that want a number of neighbours (§3.9.1) do not look at what is covered: all of p's topics stay in need, so a
    gain is the whole intersection and no neighbour is a loss.
    """
    coverage.lay_need(p, task.k[p] if task.counts_topics else _NEVER_COVERED, neighbours, profiles, need)


@njit
def _missing(p: int, degree: int, task: Task, profiles: Profiles, need: Need) -> int:
    """How much is missing: uncovered topics, or neighbours for tasks that want a number of them."""
    if task.counts_topics:
        return coverage.uncovered(p, profiles, need)
    return int(max(task.k[p] - degree, 0))


@njit
def maintain(
    seed: int,
    now: int,
    nodes: tuple[int, int],
    task: Task,
    degree: Columns,
    target: Columns,
    rows: Rows,
    profiles: Profiles,
    members: Membership,
    letters: Letters,
) -> None:
    """Fig. 2 for the nodes first … last-1: connect when something is missing, disconnect when there is too much.

    `degree` and `target` are what heartbeats told. A node with K = 0 only answers.
    """
    first, last = nodes
    need = np.zeros(len(profiles.weights), np.int64)
    scratch = Gains(np.zeros(len(members.alive), np.int32), np.empty(len(members.alive), np.int32))
    room, period = room_for_a_row(rows), task.asked.shape[1]
    for p in range(first, last):
        letters.to[p], letters.kind[p], letters.answer[p] = NOBODY, NOTHING, NOTHING
        if period > 0:
            task.asked[p, now % period] = NOBODY
        if not members.alive[p] or task.k[p] == 0:
            continue
        neighbours = neighbours_in(p, task.role, rows, room)
        _lay(p, neighbours, task, profiles, need)
        missing = _missing(p, task.degree[p], task, profiles, need)
        if missing > 0:
            task.target[p] = task.limit[p]
            if task.degree[p] < task.target[p]:
                q = _whom_to_connect(seed, now, p, neighbours, task, profiles, members, need, scratch)
                if q != NOBODY:
                    letters.to[p], letters.kind[p] = q, CONNECT
                    if period > 0:
                        task.asked[p, now % period] = q
        if missing == 0 or task.degree[p] > task.limit[p]:
            task.target[p] = min(task.limit[p], task.degree[p])
            ties = absorb(draw(seed, now, p, DISCONNECT_TIES), task.role)
            q = coverage.disconnect_candidate(neighbours, degree, target, ties, profiles, need)
            if q != NOBODY and (task.degree[p] > task.target[p] or _can_lose(p, q, task, profiles, need)):
                letters.to[p], letters.kind[p] = q, DISCONNECT
        coverage.clear_need(p, neighbours, profiles, need)


@njit
def _can_lose(p: int, q: int, task: Task, profiles: Profiles, need: Need) -> bool:
    """Whether nothing is missing without the neighbour q."""
    if task.counts_topics:
        return coverage.uncovered(p, profiles, need) + coverage.loss(q, profiles, need) == 0
    return bool(task.degree[p] > task.k[p])


@njit
def _whom_to_connect(
    seed: int,
    now: int,
    p: int,
    neighbours: Columns,
    task: Task,
    profiles: Profiles,
    members: Membership,
    need: Need,
    scratch: Gains,
) -> int:
    """CONNECT (Fig. 2): whom somebody redirected us to, else the next by the rule; not those asked lately."""
    redirected = task.redirect[p]
    task.redirect[p] = NOBODY
    if redirected != NOBODY and members.alive[redirected] and not holds(neighbours, redirected):
        return int(redirected)
    taken = np.concatenate((neighbours, task.asked[p]))
    bits = absorb(draw(seed, now, p, CONNECT_TIES), task.role)
    if task.same_order and task.rule in (GREEDY, SIMILAR):
        bits = absorb(draw(seed, 0, 0, CONNECT_TIES), task.role)
    if task.rule == RANDOM:
        return coverage.next_random(p, bits, taken, profiles, members, need, scratch)
    if task.rule == STRANGER:
        return coverage.next_stranger(p, bits, taken, members, _TRIES)
    return coverage.next_greedy(p, bits, taken, profiles, members, need, scratch)


@njit
def deliver(
    seed: int,
    now: int,
    order: NDArray[np.int64],
    margin: int,
    task: Task,
    degree: Columns,
    target: Columns,
    rows: Rows,
    profiles: Profiles,
    letters: Letters,
    sent: NDArray[np.int64],
) -> None:
    """Fig. 4: every message handled by its receiver, in this order; then every answer by its receiver.

    `sent` counts messages by kind.
    """
    need = np.zeros(len(profiles.weights), np.int64)
    room = room_for_a_row(rows)
    for p in order:
        q = letters.to[p]
        sent[letters.kind[p]] += 1
        if letters.kind[p] == CONNECT:
            if _is_neighbour(q, p, task.role, rows):  # p crashed, came back and was not missed
                letters.answer[p] = CONNECT_OK
            elif task.degree[q] < task.limit[q] + margin:
                _add(now, q, p, task, rows)
                _raise_target(q, margin, task)
                letters.answer[p] = CONNECT_OK
            else:
                neighbours = neighbours_in(q, task.role, rows, room)
                ties = absorb(draw(seed, now, q, REDIRECT_TIES), task.role)
                told = coverage.redirect_candidate(p, neighbours, degree, target, ties, profiles)
                letters.told[p] = told
                letters.answer[p] = REDIRECT if told != NOBODY else NOTHING
        elif _is_neighbour(q, p, task.role, rows):
            neighbours = neighbours_in(q, task.role, rows, room)
            _lay(q, neighbours, task, profiles, need)
            free = _can_lose(q, p, task, profiles, need)
            coverage.clear_need(q, neighbours, profiles, need)
            if free or task.degree[q] > task.limit[q]:
                _remove(q, p, task, rows)
                letters.answer[p] = DISCONNECT_OK
                if free:
                    task.target[q] = task.degree[q]
    for p in order:
        q, answer = letters.to[p], letters.answer[p]
        if answer == NOTHING:
            continue
        sent[answer] += 1
        if answer == REDIRECT:
            task.redirect[p] = letters.told[p]
        elif answer == DISCONNECT_OK:
            _remove(p, q, task, rows)
        elif not _is_neighbour(p, q, task.role, rows):
            if task.degree[p] < task.limit[p] + margin:
                _add(now, p, q, task, rows)
                _raise_target(p, margin, task)
            else:
                sent[LEAVE] += 1
                _remove(q, p, task, rows)


@njit
def is_covered(task: Task, rows: Rows, profiles: Profiles) -> NDArray[np.bool_]:
    """Which nodes have every topic covered K times by this task's neighbours."""
    size = len(rows.starts) - 1
    out, need, room = np.zeros(size, np.bool_), np.zeros(len(profiles.weights), np.int64), room_for_a_row(rows)
    for p in range(size):
        neighbours = neighbours_in(p, task.role, rows, room)
        _lay(p, neighbours, task, profiles, need)
        out[p] = _missing(p, len(neighbours), task, profiles, need) == 0
        coverage.clear_need(p, neighbours, profiles, need)
    return out
