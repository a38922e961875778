"""The five moves of a round (see the package): each a function of a job, a part and the cells that came.

Moves know nothing of who runs them: `pipeline/supersteps` has Spark deliver the cells, tests deliver them by hand.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from grapevine.blocks import exchange, sampling
from grapevine.blocks.meetings import NO_MEETINGS
from grapevine.blocks.profiles import Profiles
from grapevine.blocks.rows import Rows
from grapevine.blocks.views import NOBODY, Views
from grapevine.kernels.csr import Columns, Starts
from grapevine.kernels.jit import njit
from grapevine.kernels.rng import draw
from grapevine.sim.parts import files
from grapevine.sim.parts.cells import SAMPLES, VIEWS, Cell, append, open_request, pack, request
from grapevine.sim.parts.split import Asked, Calls, Split, arrange, sort_partners

Cells = Iterable[tuple[int, Cell]]  # by the part that sent it, or that it is for
Move = Callable[["Job", int, Cells], Iterator[tuple[int, Cell]]]


@dataclass(frozen=True, slots=True, kw_only=True)
class Job:
    """One round, as every task is told of it. Small: arrays are in files (`files.shared`), by their paths."""

    folder: Path
    split: Split
    seed: int
    now: int
    before: str  # the version of rows that the round begins with
    after: str  # the one that it ends with
    ring_slots: int
    max_age: int
    everyone: bool  # all are online and settled
    alive: Path
    settled: Path
    full: Path  # by node: has no room for connections; empty: there is no bound
    row_sizes: Path
    profiles: tuple[Path, ...]  # the fields of `Profiles`
    prepare: Callable[..., exchange.Select]
    config: Any
    reads: dict[str, Any]  # paths of arrays, and plain numbers

    def own_sizes(self, part: int) -> Columns:
        """Room for links of the part's nodes."""
        first, last = self.split.range_of(part)
        return files.shared(self.row_sizes)[first:last]

    def rows(self, part: int) -> Rows:
        """The part's rows at the start of the round."""
        return files.fetch_rows(self.folder / "rows" / self.before / str(part), self.own_sizes(part))

    def place_of(self, part: int, what: str) -> Path:
        """Where a move leaves something for the next."""
        return self.folder / "calls" / self.after / f"{part}-{what}"

    def views(self, rows: Rows, part: int, others: list[Columns]) -> Views:
        """Rows as kernels read them: own ones, then those of the others."""
        first, last = self.split.range_of(part)
        nodes = np.concatenate([np.arange(first, last, dtype=np.int32), *others])
        return rows.views(nodes, files.shared(self.alive), files.shared(self.settled))

    def select(self, memory: dict[str, Any]) -> exchange.Select:
        """The system's kernel, for rows that remember this."""
        profiles = Profiles(*(files.shared(path) for path in self.profiles))
        reads = {name: files.shared(found) if isinstance(found, Path) else found for name, found in self.reads.items()}
        return exchange.Rules(self.prepare, self.config, reads).select(profiles, memory)


def ask_for_samples(job: Job, part: int, cells: Cells) -> Iterator[tuple[int, Cell]]:
    """Move 1: requests for samples. Nothing has come yet."""
    rows = job.rows(part)
    yield from _requests(job, part, _sampling_partners(job, part, rows), rows, SAMPLES)


def answer_samples(job: Job, part: int, cells: Cells) -> Iterator[tuple[int, Cell]]:
    """Move 2: the samples that were asked for."""
    yield from _answers(job, part, cells, job.rows(part), SAMPLES, "samples")


def ask_for_views(job: Job, part: int, cells: Cells) -> Iterator[tuple[int, Cell]]:
    """Move 3: new caches, then requests for views."""
    rows = job.rows(part)
    asked, answers = _sampling_partners(job, part, rows), _sorted(cells)
    views, (partner, starts, who) = _gather(job, part, rows, asked, answers, SAMPLES, "samples")
    count = len(rows.starts) - 1
    new = np.zeros_like(rows.cache), np.zeros_like(rows.cache_heard)  # also what is not written: the same bytes
    sampling.sample_round(job.seed, job.now, (0, count), views, partner, (starts, who), new)
    files.store(job.place_of(part, "cache"), dict(zip(SAMPLES, new, strict=True)))
    rows.cache, rows.cache_heard = new
    yield from _requests(job, part, _exchange_partners(job, part, rows), rows, VIEWS)


def answer_views(job: Job, part: int, cells: Cells) -> Iterator[tuple[int, Cell]]:
    """Move 4: the views that were asked for."""
    yield from _answers(job, part, cells, _sampled(job, part), VIEWS, "views")


def choose_links(job: Job, part: int, cells: Cells) -> Iterator[tuple[int, Cell]]:
    """Move 5: new rows, stored. Sends one cell, to whoever runs the job: the digest of the part's links."""
    rows, answers = _sampled(job, part), _sorted(cells)
    asked = _exchange_partners(job, part, rows)
    views, contacts = _gather(job, part, rows, asked, answers, VIEWS, "views")
    this = exchange.Exchange(
        job.seed, job.now, job.now - job.max_age, views, contacts, job.everyone, files.shared(job.full), NO_MEETINGS
    )
    new = rows.unwritten()
    out = exchange.NewRows(new.links, new.heard, new.backups)
    if len(rows.starts) > 1:
        job.select(rows.memory)((0, len(rows.starts) - 1), this, out)
    new.cache, new.cache_heard = rows.cache, rows.cache_heard
    files.store_rows(job.folder / "rows" / job.after / str(part), new)
    yield part, np.frombuffer(digest(job.split.range_of(part)[0], new).to_bytes(8, "little"), np.int32)


MOVES: tuple[Move, ...] = (ask_for_samples, answer_samples, ask_for_views, answer_views, choose_links)


def digest(first: int, rows: Rows) -> int:
    """A number by which the overlays of two runs are compared: of every link of the nodes from `first` on, its slot and
    when it was heard. Digests of parts add up, modulo 2^64, to that of the whole."""
    return int(_digest(first, rows.starts, rows.links, rows.heard))


@njit
def _digest(first: int, starts: Starts, links: Columns, heard: Columns) -> np.uint64:
    total = np.uint64(0)
    for row in range(len(starts) - 1):
        for at in range(starts[row], starts[row + 1]):
            if links[at] != NOBODY:
                total += draw(first + row, at - starts[row], links[at], heard[at])
    return total


def _sampling_partners(job: Job, part: int, rows: Rows) -> Asked:
    partner = np.empty(len(rows.starts) - 1, np.int32)
    sampling.choose_partners(job.seed, job.now, 0, len(partner), job.views(rows, part, []), partner)
    return sort_partners(partner, job.split)


def _exchange_partners(job: Job, part: int, rows: Rows) -> Asked:
    partner, views = np.empty(len(rows.starts) - 1, np.int32), job.views(rows, part, [])
    exchange.choose_partners(job.seed, job.now, 0, len(partner), views, job.ring_slots, partner)
    return sort_partners(partner, job.split)


def _sampled(job: Job, part: int) -> Rows:
    """The part's rows with the caches of this round."""
    rows, found = job.rows(part), files.fetch(job.place_of(part, "cache"))
    rows.cache, rows.cache_heard = (found[name] for name in SAMPLES)
    return rows


def _requests(job: Job, part: int, asked: Asked, rows: Rows, fields: tuple[str, ...]) -> Iterator[tuple[int, Cell]]:
    """A request to every part, and nothing but a sign of life to itself, so that each has its next move."""
    first, _ = job.split.range_of(part)
    for other in range(job.split.parts):
        which = asked.of_part(other) if other != part else np.empty(0, np.int32)
        calls = Calls(asked.partner[which], which + np.int32(first))
        yield other, request(calls, pack(rows, which, fields))


def _answers(
    job: Job, part: int, cells: Cells, rows: Rows, fields: tuple[str, ...], what: str
) -> Iterator[tuple[int, Cell]]:
    """What every part asked for; the requests themselves are kept for the next move."""
    first, _ = job.split.range_of(part)
    came = _sorted(cells)
    files.store(job.place_of(part, what), {str(source): cell for source, cell in came.items()})
    for source, cell in came.items():
        calls, _ = open_request(cell)
        yield source, np.concatenate(pack(rows, calls.called - np.int32(first), fields))


def _sorted(cells: Cells) -> dict[int, Cell]:
    """Cells by ascending source; a source that was heard twice said the same."""
    return dict(sorted(cells, key=lambda each: each[0]))


def _gather(
    job: Job, part: int, own: Rows, asked: Asked, answers: dict[int, Cell], fields: tuple[str, ...], what: str
) -> tuple[Views, exchange.Contacts]:
    """The own rows with all that came behind them, and who contacts whom by rows."""
    kept = files.fetch(job.place_of(part, what))
    came = {source: open_request(kept[str(source)]) for source in sorted(map(int, kept)) if source != part}
    contacts, others = arrange(asked, {source: calls for source, (calls, _) in came.items()}, part, job.split)
    bodies = [answers[source] for source in sorted(answers) if source != part] + [body for _, body in came.values()]
    rows = append(own, others, bodies, files.shared(job.row_sizes), fields)
    return job.views(rows, part, others), contacts
