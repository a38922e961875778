"""Connections that two nodes agree on: SpiderCast's neighbour maintenance (Figs. 2 and 4) as one synchronous round.

Theory. A node runs one or more tasks (greedy, random, …). Each task has its own neighbours, a limit L^max on their
number, and a target L, the number that the node is content with. A node that misses something asks another to connect;
one that has enough asks a neighbour that also has too many to disconnect. Neither happens unless the other end agrees:
it accepts a connection while it has fewer than L^max + Margin neighbours, otherwise it names one of its own neighbours
to ask instead (redirect); it lets a neighbour go when it misses nothing without it, or is above its limit.

What a node decides is in `consent`, whom it chooses in `coverage`; peers call the same. Here is how all nodes do it at
once. A round of one task is a `Step`: `maintain` lets every node do one iteration of MAINTAINNEIGHBORS from the state
at the start, sending one message at most; `arrivals` puts the messages into random order; `deliver` handles them one by
one, and then the answers. Tasks take their steps one after the other, `heartbeat` ends the round.

Invariants:
1. A link is in the tables of both ends, with the same tasks, except where one end has crashed; what is left at the
   other end falls away with heartbeats (`heartbeat`, `drop_silent`).
2. A link that serves two tasks is one slot: `Rows.roles` has a bit per task. The bits of a free slot mean nothing.
3. Nobody accepts more than L^max + Margin neighbours in a task, and tables have room for that, so `_add` finds a slot.
4. A decision reads degrees and targets of others as the last heartbeat told them (`Step.degree`, `Step.target`), never
   as they are now; a neighbour that crashed and is not yet missed counts as a node without links.
5. `maintain` writes what belongs to its own nodes alone, so chunks may run on threads; `deliver` runs on one.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from grapevine.blocks import consent, coverage
from grapevine.blocks.consent import Printed
from grapevine.blocks.coverage import Gains, Membership, Need, holds
from grapevine.blocks.profiles import Profiles
from grapevine.blocks.views import ARRIVAL, CONNECT_TIES, DISCONNECT_TIES, NOBODY, REDIRECT_TIES
from grapevine.kernels.csr import Columns, Starts
from grapevine.kernels.jit import njit
from grapevine.kernels.rng import absorb, draw

# The rule of a task: what it wants, and whom it asks next (`coverage`). The first two want every topic covered K times,
# the others a number of neighbours.
GREEDY, RANDOM, SIMILAR, STRANGER = range(4)
# Kinds of messages, as the `messages` table calls them, and their numbers.
MESSAGE_KINDS = "connect", "connect-ok", "redirect", "disconnect", "disconnect-ok", "leave"
NOTHING, CONNECT, CONNECT_OK, REDIRECT, DISCONNECT, DISCONNECT_OK, LEAVE = range(-1, 6)
# How everybody breaks ties: each node at random; all by one order; all by one order that is drawn anew in every round.
OWN_TIES, COMMON_ORDER, COMMON_STREAM = range(3)
_NEVER_COVERED = 2**30  # a K that no number of neighbours reaches


class Rows(NamedTuple):
    """The tables of all nodes, ragged: node p has the slots starts[p] … starts[p + 1]-1."""

    starts: Starts
    links: Columns  # slot → neighbour; NOBODY: free
    heard: Columns  # slot → the round of its last heartbeat
    roles: NDArray[np.uint8]  # slot → the bits of the tasks that it serves


class Task(NamedTuple):
    """One neighbour maintenance task of all nodes (Fig. 1), for a whole run. Arrays have an entry per node."""

    role: int  # its bit in `Rows.roles`
    rule: int  # GREEDY, RANDOM, SIMILAR or STRANGER
    k: Columns  # wanted neighbours a topic (K); for the last two rules: wanted neighbours; 0: the node only answers
    limit: Columns  # L^max
    target: Columns  # L
    degree: Columns  # neighbours in this task, now; counted anew at the start of a round (`count_degrees`)
    redirect: Columns  # whom to ask next, because the node that was asked last said so; NOBODY: by the rule
    asked: NDArray[np.int32]  # [node, round modulo its length]: whom it asked lately, and not again (quarantine)
    ties: int  # how equally good nodes are told apart: OWN_TIES, COMMON_ORDER or COMMON_STREAM
    counts_topics: bool  # whether it wants topics covered (GREEDY, RANDOM) or a number of neighbours


class Messages(NamedTuple):
    """The one message that each node may send in a step, and its answer; an entry per sender."""

    to: Columns  # receiver; NOBODY: none was sent
    kind: Columns  # CONNECT or DISCONNECT; NOTHING: none was sent
    answer: Columns  # CONNECT_OK, REDIRECT or DISCONNECT_OK; NOTHING: the receiver does not agree, and is silent
    redirect_to: Columns  # with the answer REDIRECT: whom to ask instead


class Step(NamedTuple):
    """One iteration of one task at every node: what `maintain` and `deliver` read, and the tables that they write."""

    seed: int
    now: int  # the round
    margin: int  # neighbours that a node accepts beyond its limit
    printed: Printed
    task: Task
    degree: Columns  # of every node in this task, as the last heartbeat told: a copy from the start of the step
    target: Columns  # likewise
    rows: Rows
    profiles: Profiles


@njit
def room_for_a_row(rows: Rows) -> Columns:
    """Scratch that holds the neighbours of any node: as long as the longest row."""
    most = 0
    for p in range(len(rows.starts) - 1):
        most = max(most, rows.starts[p + 1] - rows.starts[p])
    return np.empty(most, np.int32)


@njit
def neighbours_in(p: int, role: int, rows: Rows, out: Columns) -> Columns:
    """The neighbours of p in one task, in the order of its slots: the used part of `out`, which is overwritten."""
    count = 0
    for at in range(rows.starts[p], rows.starts[p + 1]):
        if rows.links[at] != NOBODY and rows.roles[at] & role:
            out[count] = rows.links[at]
            count += 1
    return out[:count]


@njit
def drop_silent(oldest: int, online: Columns, rows: Rows) -> None:
    """FAILUREDETECTIONSUSPECT: neighbours last heard before the round `oldest` are no longer neighbours, in any task.

    First thing in a round. Degrees are wrong until `count_degrees`.
    """
    links, heard = rows.links, rows.heard
    for p in online:
        for at in range(rows.starts[p], rows.starts[p + 1]):
            if links[at] != NOBODY and heard[at] < oldest:
                links[at] = NOBODY


@njit
def count_degrees(role: int, online: Columns, rows: Rows, out: Columns) -> None:
    """Neighbours of every online node in a task, into `out` (0 for the others); several tasks: their bits in `role`."""
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

    Last thing in a round: links that were told of have `heard` = now. A node that came back from a crash knows nothing
    of its old links, and is silent on them.
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
    """The senders in the order in which their messages arrive: at random, drawn for this round and task."""
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
    """q becomes a neighbour of p in this task: in the slot that it has already, else in the first free one.

    The caller has checked that p is below L^max + Margin, so there is one (invariant 3).
    """
    slot = NOBODY
    for at in range(rows.starts[p], rows.starts[p + 1]):
        if rows.links[at] == q:
            slot = at
            break
        if rows.links[at] == NOBODY and slot == NOBODY:
            slot = at
    if rows.links[slot] != q:
        rows.links[slot], rows.roles[slot] = q, 0
    rows.heard[slot] = now
    rows.roles[slot] |= np.uint8(task.role)
    task.degree[p] += 1


@njit
def _raise_target(p: int, step: Step) -> None:
    """A neighbour was added to p: its target may follow the degree."""
    task = step.task
    task.target[p] = consent.raised(task.degree[p], task.target[p], task.limit[p], step.margin, step.printed.target)


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
    """Lay out the need of p (`coverage.lay_need`) for the task's rule.

    Tasks that want a number of neighbours (§3.9.1) do not look at what is covered: all of p's topics stay in need, so a
    gain is the whole intersection and no neighbour is a loss.
    """
    coverage.lay_need(p, task.k[p] if task.counts_topics else _NEVER_COVERED, neighbours, profiles, need)


@njit
def _missing(p: int, degree: int, task: Task, profiles: Profiles, need: Need) -> int:
    """What p lacks: how many topics are uncovered, or for tasks that want a number of neighbours, how many of these."""
    if task.counts_topics:
        return coverage.uncovered(p, profiles, need)
    return int(max(task.k[p] - degree, 0))


@njit
def maintain(step: Step, nodes: tuple[int, int], members: Membership, messages: Messages) -> None:
    """Fig. 2 for the nodes first … last-1: connect when something is missing, disconnect when there is too much.

    Writes the entries of these nodes in `messages` and in the task's `target`, `redirect` and `asked`; no table
    changes. A node that misses something and is below its limit asks to connect; one that misses nothing, or is above
    its limit, asks to disconnect. A node with K = 0 only answers.
    """
    first, last = nodes
    seed, now, task, rows, profiles = step.seed, step.now, step.task, step.rows, step.profiles
    degree, target = step.degree, step.target
    need = np.zeros(len(profiles.weights), np.int64)
    scratch = Gains(np.zeros(len(members.alive), np.int32), np.empty(len(members.alive), np.int32))
    room, period = room_for_a_row(rows), task.asked.shape[1]
    for p in range(first, last):
        messages.to[p], messages.kind[p], messages.answer[p] = NOBODY, NOTHING, NOTHING
        if period > 0:
            task.asked[p, now % period] = NOBODY
        if not members.alive[p] or task.k[p] == 0:
            continue
        neighbours = neighbours_in(p, task.role, rows, room)
        _lay(p, neighbours, task, profiles, need)
        missing = _missing(p, task.degree[p], task, profiles, need)
        task.target[p], connects, parts = consent.iterate(missing, task.degree[p], task.limit[p])
        if connects:
            q = _whom_to_connect(step, p, neighbours, members, need, scratch)
            if q != NOBODY:
                messages.to[p], messages.kind[p] = q, CONNECT
                if period > 0:
                    task.asked[p, now % period] = q
        if parts:
            ties = absorb(draw(seed, now, p, DISCONNECT_TIES), task.role)
            q = coverage.disconnect_candidate(neighbours, degree, target, ties, profiles, need)
            if q != NOBODY and consent.asks_to_part(task.degree[p], task.target[p], _spare(p, q, task, profiles, need)):
                messages.to[p], messages.kind[p] = q, DISCONNECT
        coverage.clear_need(p, neighbours, profiles, need)


@njit
def _spare(p: int, q: int, task: Task, profiles: Profiles, need: Need) -> bool:
    """Whether p lacks nothing without its neighbour q; its need is laid out."""
    if task.counts_topics:
        return coverage.uncovered(p, profiles, need) + coverage.loss(q, profiles, need) == 0
    return bool(task.degree[p] > task.k[p])


@njit
def _whom_to_connect(step: Step, p: int, neighbours: Columns, members: Membership, need: Need, scratch: Gains) -> int:
    """CONNECT (Fig. 2): whom somebody redirected us to, else the next by the rule, not one of those asked lately.

    NOBODY when there is nobody to ask. A redirect is used up, whether it is followed or not.
    """
    seed, now, task, profiles = step.seed, step.now, step.task, step.profiles
    redirected = task.redirect[p]
    task.redirect[p] = NOBODY
    if redirected != NOBODY and members.alive[redirected] and not holds(neighbours, redirected):
        return int(redirected)
    taken = np.concatenate((neighbours, task.asked[p]))
    bits = absorb(draw(seed, now, p, CONNECT_TIES), task.role)
    if task.ties != OWN_TIES and task.rule in (GREEDY, SIMILAR):
        drawn_in = now if task.ties == COMMON_STREAM else 0
        bits = absorb(draw(seed, drawn_in, 0, CONNECT_TIES), task.role)
    if task.rule == RANDOM:
        return coverage.next_random(p, bits, taken, profiles, members, need, scratch)
    if task.rule == STRANGER:
        return coverage.next_stranger(p, bits, taken, members)
    return coverage.next_greedy(p, bits, taken, profiles, members, need, scratch)


@njit
def deliver(step: Step, order: NDArray[np.int64], messages: Messages, sent: NDArray[np.int64]) -> None:
    """Fig. 4: every message handled by its receiver, in the order of these senders; then every answer, likewise.

    Both ends' tables, degrees and targets change as connections are made and ended. `sent` has a count per kind of
    message, to which those of this step are added.
    """
    _answer(step, order, messages, sent)
    _take_answers(step, order, messages, sent)


@njit
def _answer(step: Step, order: NDArray[np.int64], messages: Messages, sent: NDArray[np.int64]) -> None:
    """Fig. 4, the receivers of requests."""
    seed, now, margin, task, rows, profiles = step.seed, step.now, step.margin, step.task, step.rows, step.profiles
    degree, target = step.degree, step.target
    need = np.zeros(len(profiles.weights), np.int64)
    room = room_for_a_row(rows)
    for p in order:
        q = messages.to[p]
        sent[messages.kind[p]] += 1
        if messages.kind[p] == CONNECT:
            if _is_neighbour(q, p, task.role, rows):  # p crashed, came back and was not missed
                messages.answer[p] = CONNECT_OK
            elif consent.accepts(task.degree[q], task.limit[q], margin):
                _add(now, q, p, task, rows)
                _raise_target(q, step)
                messages.answer[p] = CONNECT_OK
            else:
                neighbours = neighbours_in(q, task.role, rows, room)
                ties = absorb(draw(seed, now, q, REDIRECT_TIES), task.role)
                how = margin, step.printed.redirect
                other = coverage.redirect_candidate(p, neighbours, degree, target, how, ties, profiles)
                messages.redirect_to[p] = other
                messages.answer[p] = REDIRECT if other != NOBODY else NOTHING
        elif _is_neighbour(q, p, task.role, rows):
            neighbours = neighbours_in(q, task.role, rows, room)
            _lay(q, neighbours, task, profiles, need)
            spare = _spare(q, p, task, profiles, need)
            coverage.clear_need(q, neighbours, profiles, need)
            if consent.lets_go(task.degree[q], task.target[q], task.limit[q], spare, step.printed.disconnect):
                _remove(q, p, task, rows)
                messages.answer[p] = DISCONNECT_OK
                if spare:
                    task.target[q] = task.degree[q]


@njit
def _take_answers(step: Step, order: NDArray[np.int64], messages: Messages, sent: NDArray[np.int64]) -> None:
    """Fig. 4, the receivers of answers. Who has no room left when it is accepted says LEAVE at once."""
    now, margin, task, rows = step.now, step.margin, step.task, step.rows
    for p in order:
        q, answer = messages.to[p], messages.answer[p]
        if answer == NOTHING:
            continue
        sent[answer] += 1
        if answer == REDIRECT:
            task.redirect[p] = messages.redirect_to[p]
        elif answer == DISCONNECT_OK:
            _remove(p, q, task, rows)
        elif not _is_neighbour(p, q, task.role, rows):
            if consent.accepts(task.degree[p], task.limit[p], margin):
                _add(now, p, q, task, rows)
                _raise_target(p, step)
            else:
                sent[LEAVE] += 1
                _remove(q, p, task, rows)


@njit
def is_covered(task: Task, rows: Rows, profiles: Profiles) -> NDArray[np.bool_]:
    """Flags of the nodes to whom this task's neighbours are enough: every topic is covered, or there are as many as
    wanted."""
    size = len(rows.starts) - 1
    out, need, room = np.zeros(size, np.bool_), np.zeros(len(profiles.weights), np.int64), room_for_a_row(rows)
    for p in range(size):
        neighbours = neighbours_in(p, task.role, rows, room)
        _lay(p, neighbours, task, profiles, need)
        out[p] = _missing(p, len(neighbours), task, profiles, need) == 0
        coverage.clear_need(p, neighbours, profiles, need)
    return out
