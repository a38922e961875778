"""A network whose rows are in files between rounds, and whose exchanges are done by tasks elsewhere.

To a system it is a `Network`: the same steps with the same results. Rows are fetched when somebody looks at them
(measurements, joins, walks) and dropped before the next exchange; if they were changed, they are stored first.
"""

from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from grapevine.blocks.exchange import Rules
from grapevine.blocks.network import Network
from grapevine.blocks.rows import NO_MEMORY, Rows, SlotMemory
from grapevine.kernels.csr import Columns
from grapevine.model.workload import Workload
from grapevine.sim.parts import files
from grapevine.sim.parts.cells import VIEWS
from grapevine.sim.parts.moves import Job, digest
from grapevine.sim.parts.split import Split


class Report(NamedTuple):
    """What a job tells when it is done."""

    digest: int  # of all links as the exchange left them (`moves.digest`)
    bytes_sent: int  # in cells, between parts


Run = Callable[[Job], Report]  # all moves of a round, for all parts; raises when one of them cannot be done


class PartedNetwork(Network):
    """A `Network` in so many parts, in a folder that it shares with whoever does its rounds (`run`)."""

    def __init__(self, workload: Workload, *, folder: Path, parts: int, run: Run, **options: Any) -> None:
        self._folder, self._run = folder, run
        self.split = Split(workload.node_count, parts)
        self._version: str | None = None  # where the rows are that are not here; None: here
        self._rows: Rows | None = None
        self._changed = True
        self.report = Report(0, 0)  # of the last round
        self._published: dict[str, tuple[NDArray[Any], Path]] = {}  # what all parts read, and where it is
        self.row_sizes = np.zeros(workload.node_count, np.int32)
        super().__init__(workload, **options)

    @property
    def rows(self) -> Rows:
        """All rows, fetched if they are elsewhere. Whoever writes into them says so (`links_changed`)."""
        if self._rows is None:
            self._rows = self._fetch()
        return self._rows

    @rows.setter
    def rows(self, rows: Rows) -> None:
        self._rows, self._changed = rows, True

    def _fetch(self) -> Rows:
        folder, bounds = self._folder / "rows" / str(self._version), map(self.split.range_of, range(self.split.parts))
        parts = [files.fetch_rows(folder / str(i), self.row_sizes[a:b]) for i, (a, b) in enumerate(bounds)]
        starts = np.concatenate([[0], np.cumsum(self.row_sizes)]).astype(np.int64)
        joined = (np.concatenate([getattr(part, name) for part in parts]) for name in VIEWS)
        memory = {name: np.concatenate([part.memory[name] for part in parts]) for name in parts[0].memory}
        return Rows(starts, *joined, memory=memory)

    def _store(self, version: str) -> None:
        rows, starts = self.rows, self.rows.starts
        for part in range(self.split.parts):
            a, b = self.split.range_of(part)
            slots = slice(starts[a], starts[b])
            memory = {name: array[slots] for name, array in rows.memory.items()}
            caches = rows.cache[a:b], rows.cache_heard[a:b], rows.backups[a:b]
            some = Rows(starts[a : b + 1], rows.links[slots], rows.heard[slots], *caches, memory)
            place = self._folder / "rows" / version / str(part)
            shutil.rmtree(place, ignore_errors=True)  # of a run that was killed before it could note it
            files.store_rows(place, some)

    def set_room(self, row_sizes: NDArray[np.int64], memory: SlotMemory = NO_MEMORY) -> None:
        super().set_room(row_sizes, memory)
        self.row_sizes = row_sizes.astype(np.int32)

    def links_changed(self) -> None:
        super().links_changed()
        self._changed = True

    def open_at_once(self, nodes: Columns) -> None:
        super().open_at_once(nodes)
        self._changed = True

    def sample(self) -> None:
        """Done together with the exchange that follows: a round is one job."""

    def exchange(self, rules: Rules, *, ring_slots: int, max_age: int) -> None:
        if self._changed or self._version is None:
            self._version = f"{self.now}-begun"
            self._store(self._version)
        full = self.full(ring_slots)
        links = self.rows.links if self.most_links is not None else None
        self._rows, self._changed = None, False  # others need the memory
        before, after = self._version, f"{self.now}"
        job = self._job(rules, before, after, full, ring_slots=ring_slots, max_age=max_age)
        shutil.rmtree(self._folder / "rows" / after, ignore_errors=True)
        shutil.rmtree(self._folder / "calls", ignore_errors=True)
        self.report = self._run(job)
        self.bytes_sent += self.report.bytes_sent
        self._version, self._neighbours = after, None
        if links is not None:  # answers to requests are worked out here, where all tables come together
            self.accept(links, self.rows, ring_slots)
            self.links_changed()
            self.report = self.report._replace(digest=digest(0, self.rows))

    def put_away(self) -> str:
        """See to it that the rows of this moment are in files; returns the version that they are."""
        if self._changed or self._version is None:
            self._version = f"{self.now}-done"
            self._store(self._version)
            self._changed = False
        return self._version

    def presence(self) -> dict[str, NDArray[Any]]:
        """Who is online and since when, as `go_on` takes it."""
        return {"alive": self.alive, "joined": self.joined, "settles": self._settles}

    def go_on(self, now: int, version: str, bytes_sent: int, presence: dict[str, NDArray[Any]]) -> None:
        """Be as a network was after the round `now`, whose rows are this version."""
        self.now, self.bytes_sent = now, bytes_sent
        self.alive, self.joined, self._settles = (presence[name] for name in ("alive", "joined", "settles"))
        self._version, self._rows, self._changed, self._neighbours = version, None, False, None

    def _job(
        self, rules: Rules, before: str, after: str, full: NDArray[np.bool_], *, ring_slots: int, max_age: int
    ) -> Job:
        reads = {
            name: self._publish(f"read-{name}", found) if isinstance(found, np.ndarray) else found
            for name, found in rules.reads.items()
        }
        profiles = tuple(self._publish(f"profile-{name}", array) for name, array in self.profiles._asdict().items())
        alive, settled = self._as_told("alive", self.alive), self._as_told("settled", self.settled)
        return Job(
            folder=self._folder,
            split=self.split,
            seed=self.seed,
            now=self.now,
            before=before,
            after=after,
            ring_slots=ring_slots,
            max_age=max_age,
            everyone=bool(alive.all() and settled.all()),
            alive=self._publish("alive", alive),
            settled=self._publish("settled", settled),
            full=self._publish("full", full),
            row_sizes=self._publish("row_sizes", self.row_sizes),
            profiles=profiles,
            prepare=rules.prepare,
            config=rules.config,
            reads=reads,
        )

    def _publish(self, name: str, array: NDArray[Any]) -> Path:
        """Where all parts read this array, which nobody writes into; it is written if it is not that of last time."""
        known = self._published.get(name)
        if known is not None and known[0] is array:
            return known[1]
        path = files.share(self._folder / "shared", name, array)
        if known is not None:
            known[1].unlink(missing_ok=True)
        self._published[name] = array, path
        return path

    def _as_told(self, name: str, array: NDArray[Any]) -> NDArray[Any]:
        """The array as it was published last, if it still is so; otherwise a copy of it."""
        known = self._published.get(name)
        return known[0] if known is not None and np.array_equal(known[0], array) else array.copy()
