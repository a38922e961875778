"""All nodes of a simulated network: profiles, views, who is there; and the synchronous steps that systems take.

The round engine (`sim/rounds`) owns the clock (`now`) and says who comes and goes; a system
(`systems/contracts/rounds`) calls the steps, and sets the room for links and the bound on degrees. Nodes are numbered
as in the workload.

A step reads the state at its start and writes a second buffer; nodes are split into chunks that run on threads (the
kernels release the interpreter lock). A node's new row depends on the old state and the seed alone, so the result does
not depend on the number of threads or chunks.
"""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor, wait
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from grapevine.blocks import acceptance, exchange, sampling, small_world
from grapevine.blocks.meetings import NO_MEETINGS, BeforeAndAfter, keep_all, new_meetings
from grapevine.blocks.neighbours import both_ways, online_links
from grapevine.blocks.profiles import make_profiles
from grapevine.blocks.rows import NO_MEMORY, Rows, SlotMemory, empty_rows
from grapevine.blocks.views import BOOTSTRAP, NOBODY, Views, group_contacts
from grapevine.kernels import csr
from grapevine.kernels.csr import Columns, Starts
from grapevine.kernels.jit import njit
from grapevine.kernels.rng import below, draw
from grapevine.model.workload import Csr, Workload

FEW_NODES = 50_000  # up to here, one thread does light work as fast as many


class Network:
    """Arrays over nodes, and the steps of a round. Nobody is there until `open_at_once` or `join`.

    `sample_size` is the length of the peer-sampling cache (0: no sampling), `ring_backups` how many nodes are
    remembered in each direction of the ring, `settle_rounds` how long a newcomer waits before it is a ring link of
    others.
    """

    def __init__(
        self,
        workload: Workload,
        *,
        sample_size: int,
        ring_backups: int = 0,
        settle_rounds: int = 0,
        seed: int,
        threads: int = 1,
    ) -> None:
        self.seed, self.now, self.threads = seed, 0, threads
        self.ids, self.topic_ids = workload.node_ids, workload.topic_ids
        # A trace in which nothing is published would make every mean undefined; then all topics count alike.
        self.rates = workload.rates if workload.rates.any() else np.ones(workload.topic_count)
        self.alive = np.zeros(workload.node_count, np.bool_)
        self.joined = np.zeros(workload.node_count, np.int32)  # the round of the last join
        self.settle_rounds = settle_rounds
        self._settles = np.zeros(workload.node_count, np.int32)  # the round in which a newcomer becomes settled
        self.set_interests(workload.node_topics, workload.topic_nodes)
        self._nodes = np.arange(self.size, dtype=np.int32)
        no_room = np.zeros(self.size, np.int64)  # for links, until a system asks for it
        self._slot_memory = NO_MEMORY
        self.rows = empty_rows(no_room, sample_size, 2 * ring_backups, {})
        self._spare: Rows | None = None
        self._neighbours: Csr | None = None
        self.bytes_sent = 0  # between its parts; none here, where it is whole
        self.most_links: int | None = None  # connections of a node, both ways; None: whoever is linked to accepts
        self._pool = ThreadPoolExecutor(threads - 1) if threads > 1 else None

    @property
    def size(self) -> int:
        """The number of nodes, online or not; they are 0 … size-1."""
        return len(self.ids)

    def set_interests(self, node_topics: Csr, topic_nodes: Csr | None = None) -> None:
        """Take these as everybody's subscriptions from now on; profiles are made anew, and `topic_nodes` unless it is
        given.

        The caller tells the system afterwards (`interests_changed`); links stay.
        """
        starts, topics = node_topics.starts, node_topics.columns
        self.profiles = make_profiles(self.ids, starts, topics, self.rates)
        self._meetings: BeforeAndAfter | None = None  # of the last round; None: it was one that nothing is known of
        self.topic_nodes = topic_nodes or Csr(*csr.transpose(starts, topics, len(self.topic_ids)))

    def set_room(self, row_sizes: NDArray[np.int64], memory: SlotMemory = NO_MEMORY) -> None:
        """Give node p room for row_sizes[p] links, and for what the system remembers beside each of them.

        A node keeps the links that it had, as far as they fit, and what was remembered is forgotten. Called by a system
        at its start, and when interests have changed; arrays of an earlier `views` are no longer used.
        """
        self.rows, self._slot_memory = self.rows.in_other_room(row_sizes, memory), memory
        self._spare = None
        self.links_changed()

    @property
    def settled(self) -> NDArray[np.bool_]:
        """Who may be a ring link of others and take part in lookups; all who were there from the start."""
        return self._settles <= self.now

    @property
    def views(self) -> Views:
        """The current state as kernels read it: no copy, so what a kernel writes into it is the state."""
        return self.rows.views(self._nodes, self.alive, self.settled)

    def links_changed(self) -> None:
        """To be called by whoever wrote into rows: `neighbours` is worked out anew, and meetings are forgotten."""
        self._neighbours = self._meetings = None

    def in_chunks(
        self, work: Callable[[int, int], object], count: int | None = None, sizes: NDArray[np.int64] | None = None
    ) -> None:
        """Call work(first, last) for ranges that cover 0 … count-1 (default: the nodes), on all threads.

        `work` may write what belongs to its range alone. Ranges are equally long; with `sizes`, which has an entry for
        each of the count (how many subscribers a topic has), they are about equally much work instead. Returns when all
        is done; an exception of any call is raised.
        """
        count = self.size if count is None else count
        if self._pool is None:
            work(0, count)
            return
        # Four a thread, and whoever is free takes the next: nobody waits long for one that was slowed down. The caller
        # works, too, since waking another thread takes as long as many nodes do.
        bounds = _bounds(4 * self.threads, count, sizes)
        ranges = iter([(a, b) for a, b in pairwise(bounds) if a < b])

        def take_turns() -> None:
            for a, b in ranges:
                work(a, b)

        others = [self._pool.submit(take_turns) for _ in range(self.threads - 1)]
        try:
            take_turns()
        finally:
            wait(others)
        for other in others:
            other.result()

    def _if_many(self, work: Callable[[int, int], object]) -> None:
        """`in_chunks` for work that takes so little time that a few nodes are done before another thread wakes."""
        if self.size < FEW_NODES:
            work(0, self.size)
        else:
            self.in_chunks(work)

    def sample(self) -> None:
        """One round of peer sampling (`blocks/sampling`): every online node has a new cache afterwards."""
        views, partner = self.views, np.empty(self.size, np.int32)
        self._if_many(lambda a, b: sampling.choose_partners(self.seed, self.now, a, b, views, partner))
        rows, spare = self.rows, self._room_to_write()
        callers, out = group_contacts(partner), (spare.cache, spare.cache_heard)
        self.in_chunks(lambda a, b: sampling.sample_round(self.seed, self.now, (a, b), views, partner, callers, out))
        rows.cache, spare.cache = spare.cache, rows.cache
        rows.cache_heard, spare.cache_heard = spare.cache_heard, rows.cache_heard

    def _room_to_write(self) -> Rows:
        self._spare = self._spare or self.rows.unwritten()
        return self._spare

    def exchange(self, rules: exchange.Rules, *, ring_slots: int, max_age: int) -> None:
        """One round of view exchange: everyone's new links by the system's rules, and heartbeats on them.

        The first `ring_slots` slots hold ring links; candidates silent for more than `max_age` rounds are left out.
        With a bound on connections (`most_links`), links need the consent of the other end.
        """
        views, partner = self.views, np.empty(self.size, np.int32)
        self._if_many(lambda a, b: exchange.choose_partners(self.seed, self.now, a, b, views, ring_slots, partner))
        contacts = partner, *group_contacts(partner)
        everyone = bool(views.alive.all() and views.settled.all())
        steady = rules.steady and everyone and max_age > 0 and self.most_links is None
        meetings = self._meetings if steady and self._meetings is not None else NO_MEETINGS
        this = exchange.Exchange(
            self.seed, self.now, self.now - max_age, views, contacts, everyone, self.full(ring_slots), meetings
        )
        rows, spare, select = self.rows, self._room_to_write(), rules.select(self.profiles, self.rows.memory)
        out = exchange.NewRows(spare.links, spare.heard, spare.backups)

        def work(first: int, last: int) -> None:
            keep_all((first, last), rows.starts, meetings)
            select((first, last), this, out)

        self.in_chunks(work)
        self.accept(rows.links, spare, ring_slots)
        rows.links, spare.links = spare.links, rows.links
        rows.heard, spare.heard = spare.heard, rows.heard
        rows.backups, spare.backups = spare.backups, rows.backups
        self.links_changed()
        self._meetings = self._next_meetings(meetings) if steady else None

    def _next_meetings(self, last: BeforeAndAfter) -> BeforeAndAfter:
        """What the next round reads and writes; after the first round with everyone, nobody has met anybody."""
        if last is not NO_MEETINGS:
            return last[1], last[0]
        return new_meetings(self.size, len(self.rows.links)), new_meetings(self.size, len(self.rows.links))

    def full(self, ring_slots: int) -> NDArray[np.bool_]:
        """Who has no room for another connection, by node; empty without a bound."""
        if self.most_links is None:
            return np.empty(0, np.bool_)
        room = self.most_links - 2 * ring_slots
        return acceptance.connections(self.rows.starts, ring_slots, self.rows.links) >= room

    def accept(self, before: Columns, new: Rows, ring_slots: int) -> None:
        """Let those answer who are linked to in the new rows; `before` are the links until now. Nothing without a
        bound."""
        if self.most_links is None:
            return
        wanted = new.links.copy()
        tables = acceptance.Tables(self.alive, self.settled, new.starts, ring_slots, before, new.links)
        acceptance.grant_ring(self.ids, tables, new.backups)
        acceptance.grant_others(self.seed, self.now, self.most_links - 2 * ring_slots, tables)
        changed = new.links != wanted
        new.heard[changed] = self.now  # what was put back is there, or it would have been let go
        for name, (_, unknown) in self._slot_memory.items():
            new.memory[name][changed] = unknown

    def neighbours(self) -> Csr:
        """Links as connections, usable both ways: each row holds whom a node links to or is linked from, ascending.

        Only links between online nodes count. The answer is kept until links change.
        """
        if self._neighbours is None:
            links = online_links(self.rows.starts, self.rows.links, self.alive)
            self._neighbours = Csr(*both_ways(*links))
        return self._neighbours

    def supposed_neighbours(self) -> Csr:
        """As `neighbours`, but links to nodes that are gone count until they are dropped: nobody has noticed yet."""
        everybody = np.ones(self.size, np.bool_)  # who is gone has no links of its own
        return Csr(*both_ways(*online_links(self.rows.starts, self.rows.links, everybody)))

    def open_at_once(self, nodes: Columns) -> None:
        """Let these nodes start together, each knowing random others of them (a bootstrap node hands them out).

        They are settled at once.
        """
        self.alive[nodes] = True
        self.joined[nodes] = self._settles[nodes] = self.now
        rows = self.rows
        cache = np.full((len(nodes), rows.cache.shape[1]), NOBODY, np.int32)
        sampling.meet_at_random(self.seed, BOOTSTRAP, len(nodes), cache)
        rows.cache[nodes] = np.where(cache == NOBODY, NOBODY, nodes[cache])
        rows.cache_heard[nodes] = self.now

    def join(self, nodes: Columns) -> None:
        """Vitis Algorithm 1: each node starts with what a random online bootstrap node knows, and that node itself.

        Where nodes keep ring backups, the bootstrap node also looks up the newcomer's own ring id, and the newcomer
        gets the backups of whom the lookup found. In an empty network this is `open_at_once`.
        """
        online = np.flatnonzero(self.alive).astype(np.int32)
        if len(online) == 0:
            self.open_at_once(nodes)
            return
        self.leave(nodes)
        if self.rows.cache.shape[1] > 0:
            _bootstrap(self.seed, self.now, nodes, online, self.ids, self.views)
        self.alive[nodes] = True
        self.joined[nodes] = self.now
        self._settles[nodes] = self.now + self.settle_rounds

    def say_goodbye(self, nodes: Columns) -> None:
        """Everybody drops its links to these nodes, who tell that they leave. Comes before `leave`, unless they
        crash."""
        leaving = np.zeros(self.size, np.bool_)
        leaving[nodes] = True
        _drop_links(leaving, self.rows.links)
        self.links_changed()

    def leave(self, nodes: Columns) -> None:
        """The nodes are gone, and what they knew with them: tables, caches and backups. Others find out by silence."""
        self.alive[nodes] = False
        rows = self.rows
        rows.cache[nodes] = NOBODY
        rows.backups[nodes] = NOBODY
        _forget_links(nodes, rows.starts, rows.links)
        self.links_changed()


def _bounds(parts: int, count: int, sizes: NDArray[np.int64] | None) -> list[int]:
    """Where so many ranges begin and end that cover 0 … count-1 and share the sizes equally (default: all are 1)."""
    if sizes is None:
        return [count * part // parts for part in range(parts + 1)]
    before = np.concatenate([[0], np.cumsum(sizes)])
    inner = np.searchsorted(before, before[-1] * np.arange(1, parts) / parts)
    return [0, *inner.tolist(), count]


@njit
def _bootstrap(seed: int, now: int, nodes: Columns, online: Columns, ids: NDArray[np.uint64], views: Views) -> None:
    """The newcomers' caches: the bootstrap node first, then its cache, so that they are sorted by freshness."""
    cache, heard, path = views.cache, views.cache_heard, np.empty(len(ids) + 1, np.int32)
    for p in nodes:
        q = online[below(draw(seed, now, p, BOOTSTRAP), len(online))]
        cache[p, 0], heard[p, 0] = q, now
        filled = 1
        for i in range(cache.shape[1]):
            if filled < cache.shape[1] and cache[q, i] != p and cache[q, i] != NOBODY:
                cache[p, filled], heard[p, filled] = cache[q, i], heard[q, i]
                filled += 1
        cache[p, filled:] = NOBODY
        if views.backups.shape[1] > 0:
            last = abs(small_world.lookup(q, ids[p], now - 1, ids, views, path)) - 1
            nearest = path[last] if views.alive[path[last]] else path[last - 1]
            views.backups[p] = views.backups[nearest]
            views.backups[p, -1] = nearest  # the farthest makes room; the order is mended in the first exchange


@njit
def _drop_links(leaving: NDArray[np.bool_], links: NDArray[np.int32]) -> None:
    for at in range(len(links)):
        if links[at] != NOBODY and leaving[links[at]]:
            links[at] = NOBODY


@njit
def _forget_links(nodes: Columns, starts: Starts, links: NDArray[np.int32]) -> None:
    for p in nodes:
        links[starts[p] : starts[p + 1]] = NOBODY
