"""Rows: what nodes know of others, as arrays that are stored, sent and swapped as a whole.

`Views` is what kernels read of them; `Rows` is who owns the arrays. All numbers in them are nodes.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType

import numpy as np
from numpy.typing import DTypeLike, NDArray

from grapevine.blocks.views import NOBODY, Views
from grapevine.kernels import csr
from grapevine.kernels.csr import Columns, Starts

# What a system remembers beside each link, for itself: the type of a value, and the one that means "not known".
SlotMemory = Mapping[str, tuple[DTypeLike, int]]
NO_MEMORY: SlotMemory = MappingProxyType({})


@dataclass(slots=True)
class Rows:
    """The rows of some nodes. Row p has the slots starts[p] … starts[p + 1]-1 of `links`, `heard` and of what is
    remembered beside links."""

    starts: Starts
    links: Columns
    heard: Columns
    cache: NDArray[np.int32]
    cache_heard: NDArray[np.int32]
    backups: NDArray[np.int32]
    memory: dict[str, NDArray[np.int64]]

    def views(self, nodes: Columns, alive: NDArray[np.bool_], settled: NDArray[np.bool_]) -> Views:
        """As kernels read them: no copy, so what a kernel writes into it is written here."""
        known = self.cache, self.cache_heard, self.backups
        return Views(nodes, self.starts, self.links, self.heard, *known, alive, settled)

    def in_other_room(self, row_sizes: NDArray[np.int64], memory: SlotMemory) -> Rows:
        """The same rows with room for so many links each. They keep those that they had as far as these fit; what is
        remembered beside links is forgotten."""
        made = empty_rows(row_sizes, self.cache.shape[1], self.backups.shape[1], memory)
        csr.copy_rows(self.starts, self.links, made.starts, made.links)
        csr.copy_rows(self.starts, self.heard, made.starts, made.heard)
        made.cache, made.cache_heard, made.backups = self.cache, self.cache_heard, self.backups
        return made

    def unwritten(self) -> Rows:
        """Room of the same shape for what the next step writes. What is remembered beside links is shared: nobody but
        the owner of a row reads it, so it is renewed in place."""
        caches = np.zeros_like(self.cache), np.zeros_like(self.cache_heard)
        links, heard = np.zeros_like(self.links), np.zeros_like(self.heard)
        return Rows(self.starts, links, heard, *caches, np.zeros_like(self.backups), self.memory)


def empty_rows(row_sizes: NDArray[np.int64], sample_size: int, backups: int, memory: SlotMemory) -> Rows:
    """Rows of nodes that know nobody, with room for so many links each, samples and ring backups."""
    starts = np.concatenate([[0], np.cumsum(row_sizes)]).astype(np.int64)
    count, slots = len(row_sizes), int(starts[-1])
    return Rows(
        starts,
        np.full(slots, NOBODY, np.int32),
        np.zeros(slots, np.int32),
        np.full((count, sample_size), NOBODY, np.int32),
        np.zeros((count, sample_size), np.int32),
        np.full((count, backups), NOBODY, np.int32),
        {name: np.full(slots, unknown, dtype) for name, (dtype, unknown) in memory.items()},
    )
