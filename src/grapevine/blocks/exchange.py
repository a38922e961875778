"""T-Man exchange of views (Jelasity & Babaoglu 2006; Vitis Algorithms 2, 3, 6 and 7).

A node contacts one neighbour a round; both merge the other's links and samples into their own and select anew. In a
synchronous round a node merges what its partner and all its callers held at the start of the round.
Heartbeats: then it sends its profile to all its neighbours and hears from those that live; a link silent for too long
is dropped. When a descriptor travels, the round in which its subject was last heard travels with it, or the dead would
circulate forever.

A system's kernel does for each of its nodes: `gather` what it hears of, select by its rules, `hear` from the new links.
Everything is read from the views at the start of the round, and written elsewhere.

What is gathered is a plain list of entries, in which a node may stand several times. Removing duplicates first would
cost more than all the choices together: nearly everything is refused by one comparison, and a rule that keeps few
compares with those few.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from grapevine.blocks import meetings
from grapevine.blocks.entries import Entries
from grapevine.blocks.meetings import NEVER, BeforeAndAfter
from grapevine.blocks.profiles import Profiles
from grapevine.blocks.views import EXCHANGE_PARTNER, NOBODY, Views, one_of, one_sample
from grapevine.kernels.bits import ask_for
from grapevine.kernels.csr import Columns, Starts
from grapevine.kernels.jit import borrowing, inlined, njit
from grapevine.kernels.lanes import LANES, keep_fresh
from grapevine.kernels.rng import draw

# Who exchanges views with whom in a round: the row of the partner that each row chose (NOBODY: none), and its callers,
# the rows that chose it, grouped. Nothing to do with the contacts of live nodes (`net/contacts`).
Contacts = tuple[Columns, Starts, Columns]


class Exchange(NamedTuple):
    """One round of view exchange, as a system's kernel reads it."""

    seed: int
    now: int  # the round
    oldest: int  # candidates last heard before this round are not considered
    views: Views  # at the start of the round
    contacts: Contacts
    everyone: bool  # all nodes are online and settled, so that nobody has to be asked
    full: NDArray[np.bool_]  # by node: has no room for connections (`acceptance`); empty: there is no bound
    meetings: BeforeAndAfter  # empty: everything is looked at


# A system's kernel with all that it reads: it writes the new rows first … last-1, all of them, also those of nodes that
# are gone.
Select = Callable[[tuple[int, int], Exchange, "NewRows"], None]


class NewRows(NamedTuple):
    """What an exchange writes, in the shapes of `Views`."""

    links: NDArray[np.int32]
    heard: NDArray[np.int32]
    backups: NDArray[np.int32]


@dataclass(frozen=True)
class Rules:
    """How a system chooses links. Whoever runs an exchange, here or elsewhere, brings the profiles and what rows
    remember.

    `prepare` is a function of a module, so that another process finds it by its name: from config, profiles, `reads`
    and memory it makes the kernel that is called. `reads` are arrays by node, or plain numbers, that the system needs
    beside profiles; when they change, they are other arrays.
    """

    prepare: Callable[[Any, Profiles, Mapping[str, Any], Mapping[str, NDArray[Any]]], Select]
    config: Any
    reads: Mapping[str, Any]
    steady: bool = False  # whom it refused it refuses again while its table gets better, and it tells of `meetings`

    def select(self, profiles: Profiles, memory: Mapping[str, NDArray[Any]]) -> Select:
        """The kernel for rows with these profiles, which remember this beside their links."""
        return self.prepare(self.config, profiles, self.reads, memory)


@borrowing
def choose_partners(
    seed: int, now: int, first: int, last: int, views: Views, ring_slots: int, partner: Columns
) -> None:
    """Whom each of the rows first … last-1 contacts in this round, into `partner`; NOBODY for nodes that are not there.

    A random neighbour; every other round one of the first `ring_slots` links: the ring is exact in half the time. A
    node without links asks one of its samples. Who chooses a node that is gone has no partner in this round.
    """
    for p in range(first, last):
        partner[p] = NOBODY
        node = views.nodes[p]
        if not views.alive[node]:
            continue
        a, b, bits = views.starts[p], views.starts[p + 1], draw(seed, now, node, EXCHANGE_PARTNER)
        q = one_of(views.links, a, min(a + ring_slots, b) if now % 2 else b, bits)
        if q == NOBODY:
            q = one_of(views.links, a, b, bits)
        if q == NOBODY:
            q = one_sample(views.cache, p, bits)
        if q != NOBODY and views.alive[q]:
            partner[p] = q


@njit
def new_entries(rows: tuple[int, int], this: Exchange) -> Entries:
    """A list with room for all that any of the rows first … last-1 can hear of in this round."""
    room = _most_entries(rows, this)
    return Entries(np.empty(room, np.int32), np.empty(room, np.uint64))


@njit
def _most_entries(rows: tuple[int, int], this: Exchange) -> int:
    """How many entries `gather` and `gather_backups` can find together at one of the rows first … last-1."""
    views = this.views
    partner, starts, who = this.contacts
    others = views.cache.shape[1] + views.backups.shape[1] + 1
    most = 1
    for p in range(rows[0], rows[1]):
        total: int = views.starts[p + 1] - views.starts[p] + others
        if partner[p] != NOBODY:
            total += views.starts[partner[p] + 1] - views.starts[partner[p]] + others
        for q in who[starts[p] : starts[p + 1]]:
            total += views.starts[q + 1] - views.starts[q] + others
        most = max(most, total)
    return most + 8  # entries are written eight at a time, before it is known how many of them stay


@inlined
def gather_links(p: int, this: Exchange, into: Columns, count: int) -> int:
    """Append p's own links to the first `count` entries of a list; returns how many it has then.

    Nothing that was last heard before `oldest`.
    """
    views = this.views
    return int(
        np.int64(_add_links(np.uint64(p), views.nodes[p], views, views.heard, this.oldest, into, np.uint64(count)))
    )


@inlined
def gather(p: int, this: Exchange, into: Columns, count: int) -> int:
    """Append what else p hears of in this round: its own samples, its partner and callers, their links and samples.

    Nothing that was last heard before `oldest`, and not p itself. Returns how many entries the list has then.
    """
    me = this.views.nodes[p]
    end = _add_samples(np.uint64(p), me, this, into, np.uint64(count))
    partner, starts, who = this.contacts
    if partner[p] != NOBODY:
        end = _add_view(np.uint64(partner[p]), me, this, into, end)
    for at in range(starts[p], starts[p + 1]):
        end = _add_view(np.uint64(who[at]), me, this, into, end)
    return int(np.int64(end))


@inlined
def _add_view(q: np.uint64, but: np.int32, this: Exchange, into: Columns, count: np.uint64) -> np.uint64:
    into[count] = this.views.nodes[q]
    end = _add_links(q, but, this.views, this.views.heard, this.oldest, into, count + np.uint64(1))
    return _add_samples(q, but, this, into, end)


@inlined
def gather_news(p: int, this: Exchange, into: Columns, backups: Columns) -> tuple[int, int]:
    """The lists of what p hears of in this round and has not refused yet: `gather` without what p saw when it met the
    same neighbours before (`meetings`), and backups of these neighbours, which serve the ring alone. Returns how many
    entries they have."""
    end, more = _add_samples(np.uint64(p), this.views.nodes[p], this, into, np.uint64(0)), np.uint64(0)
    partner, starts, who = this.contacts
    if partner[p] != NOBODY:
        end, more = _add_news(p, np.uint64(partner[p]), this, (into, end), (backups, more))
    for at in range(starts[p], starts[p + 1]):
        end, more = _add_news(p, np.uint64(who[at]), this, (into, end), (backups, more))
    return int(np.int64(end)), int(np.int64(more))


@inlined
def _add_news(
    p: int, q: np.uint64, this: Exchange, some: tuple[Columns, np.uint64], backups: tuple[Columns, np.uint64]
) -> tuple[np.uint64, np.uint64]:
    """While there are meetings, everybody is online, and all links were heard in the last round."""
    (into, end), (for_ring, more) = some, backups
    views, me, before = this.views, this.views.nodes[p], this.meetings[0]
    met = meetings.last_met(p, views.nodes[q], views, this.meetings)
    if met == NEVER:
        into[end] = views.nodes[q]
        end += np.uint64(1)
    end = _add_links(q, me, views, before.since, int(met), into, end)
    if before.renewed[q] >= met:
        more = _add_backups(q, me, this, for_ring, more)
    return _add_samples(q, me, this, into, end), more


@inlined
def _add_links(
    q: np.uint64, but: np.int32, views: Views, stamps: Columns, least: int, into: Columns, count: np.uint64
) -> np.uint64:
    """The links of the row q, but one node, whose stamps are not below the least."""
    end, last = np.int64(count), views.starts[q + np.uint64(1)]
    for at in range(views.starts[q], last, LANES):
        end = keep_fresh(views.links, stamps, at, last - at, least, but, into, end)
    return np.uint64(end)


@inlined
def _add_samples(q: np.uint64, but: np.int32, this: Exchange, into: Columns, count: np.uint64) -> np.uint64:
    views, end = this.views, np.int64(count)
    size = views.cache.shape[1]
    first = np.int64(q) * size  # of rows that lie one behind the other: reshaping them here would be a call
    for at in range(0, size, LANES):
        end = keep_fresh(views.cache, views.cache_heard, first + at, size - at, this.oldest, but, into, end)
    return np.uint64(end)


@inlined
def with_room(node: int, nodes: Columns, first: int, count: int, full: NDArray[np.bool_]) -> int:
    """Leave those of the entries first … count-1 out that have no room for another connection; returns how many entries
    are left, those before `first` included, which are the node's own links.

    A node that has no room itself leaves nobody out: it can only swap, and so can those that want it as well.
    """
    if len(full) == 0 or full[node]:
        return count
    left = first
    for i in range(first, count):
        nodes[left] = nodes[i]
        left += not full[nodes[i]]
    return left


@inlined
def gather_backups(p: int, this: Exchange, into: Columns, count: int) -> int:
    """Append the ring backups of p, its partner and its callers; each of them was alive in the last round."""
    me, (partner, starts, who) = this.views.nodes[p], this.contacts
    end = _add_backups(np.uint64(p), me, this, into, np.uint64(count))
    if partner[p] != NOBODY:
        end = _add_backups(np.uint64(partner[p]), me, this, into, end)
    for at in range(starts[p], starts[p + 1]):
        end = _add_backups(np.uint64(who[at]), me, this, into, end)
    return int(np.int64(end))


@inlined
def _add_backups(q: np.uint64, but: np.int32, this: Exchange, into: Columns, count: np.uint64) -> np.uint64:
    backups = this.views.backups
    for i in range(np.uint64(backups.shape[1])):
        into[count] = backups[q, i]
        count += np.uint64((backups[q, i] >= 0) & (backups[q, i] != but))
    return count


@inlined
def ask_for_views(p: int, this: Exchange) -> None:
    """Begin to load what `gather` will read of others when it comes to p, while the nodes before it are at work."""
    partner, starts, who = this.contacts
    stamps = this.meetings[0].since if len(this.meetings[0].since) > 0 else this.views.heard
    if partner[p] != NOBODY:
        _ask_for_view(int(partner[p]), this.views, stamps)
    for at in range(starts[p], starts[p + 1]):
        _ask_for_view(int(who[at]), this.views, stamps)


@inlined
def _ask_for_view(q: int, views: Views, stamps: Columns) -> None:
    size, kept = views.cache.shape[1], views.backups.shape[1]
    ask_for(views.links, views.starts[q])
    ask_for(views.links, views.starts[q + 1] - 1)
    ask_for(stamps, views.starts[q])
    ask_for(stamps, views.starts[q + 1] - 1)
    ask_for(views.cache, q * size)
    ask_for(views.cache, q * size + size - 1)
    ask_for(views.cache_heard, q * size)
    ask_for(views.cache_heard, q * size + size - 1)
    if kept > 0:
        ask_for(views.backups, q * kept)


@inlined
def hear(p: int, this: Exchange, out: NewRows) -> None:
    """The heartbeats on the new links of p, which are in `out` (Algorithms 6 and 7).

    Whoever lives answers, and was heard now. A link to one that does not is as old as anybody in this exchange says
    that it is; it is passed over when it is older than the system's `max_age`.
    """
    a, b = np.uint64(this.views.starts[p]), np.uint64(this.views.starts[p + 1])
    if this.everyone:
        for at in range(a, b):
            out.heard[at] = this.now
        return
    for at in range(a, b):
        q = out.links[at]
        if q != NOBODY:
            out.heard[at] = this.now if this.views.alive[q] else _last_heard(p, q, this)


@inlined
def remember(p: int, this: Exchange, structured: int, out: NewRows) -> None:
    """What a steady choice keeps of this round's meetings, when the new row of p is in `out`, its first `structured`
    links being ring and long links."""
    if not meetings.is_remembered(this.meetings):
        return
    meetings.carry_over(p, this.now, this.views, this.meetings, (out.links, out.backups), structured)
    note_meetings(p, this, out)


@inlined
def note_meetings(p: int, this: Exchange, out: NewRows) -> None:
    """Whom the row p has met in this round."""
    nodes, (partner, starts, who) = this.views.nodes, this.contacts
    if partner[p] != NOBODY:
        meetings.note(p, this.now, nodes[partner[p]], this.views, this.meetings, out.links)
    for at in range(starts[p], starts[p + 1]):
        meetings.note(p, this.now, nodes[who[at]], this.views, this.meetings, out.links)


@inlined
def keep_row(p: int, this: Exchange, out: NewRows) -> None:
    """The row of p as it was, in a round with everyone in which nothing changes it."""
    for at in range(np.uint64(this.views.starts[p]), np.uint64(this.views.starts[p + 1])):
        out.links[at], out.heard[at] = this.views.links[at], this.now
    for i in range(np.uint64(out.backups.shape[1])):
        out.backups[p, i] = this.views.backups[p, i]


@inlined
def stay_away(p: int, this: Exchange, out: NewRows) -> None:
    """The rows of a node that is not there: empty."""
    for at in range(this.views.starts[p], this.views.starts[p + 1]):
        out.links[at] = NOBODY
    for i in range(out.backups.shape[1]):
        out.backups[p, i] = NOBODY


@njit
def _last_heard(p: int, q: int, this: Exchange) -> int:
    """When the node q was last heard of, as far as the row p, its partner and its callers know; 0 when they do not."""
    partner, starts, who = this.contacts
    latest = _told_by(p, q, this)
    if partner[p] != NOBODY:
        latest = max(latest, _told_by(partner[p], q, this))
    for at in range(starts[p], starts[p + 1]):
        latest = max(latest, _told_by(who[at], q, this))
    return latest


@njit
def _told_by(teller: int, q: int, this: Exchange) -> int:
    """When the row `teller` last heard of the node q; its ring backups were there in the last round."""
    views, latest = this.views, 0
    if views.nodes[teller] == q:
        return this.now
    for at in range(views.starts[teller], views.starts[teller + 1]):
        if views.links[at] == q:
            latest = max(latest, int(views.heard[at]))
    for i in range(views.cache.shape[1]):
        if views.cache[teller, i] == q:
            latest = max(latest, int(views.cache_heard[teller, i]))
    for i in range(views.backups.shape[1]):
        if views.backups[teller, i] == q:
            latest = max(latest, this.now - 1)
    return latest
