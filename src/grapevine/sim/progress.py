"""How a running simulation is watched: what it tells, and to whom.

A watcher is called with a dict that always has `stage` and `round`:

    compiling   at most once, before the first round: `sentence` says what is compiled, and for how long
    running     a row of the table `rounds`, as soon as it is made, and `bytes_sent`
    measuring   the last row once more, when the rounds are over and everything is measured

In virtual time `round` is a second of the run's clock. `display` shows it to people.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

from grapevine.kernels.jit import compiling_told
from grapevine.model.arguments import refuse

COMPILING, RUNNING, MEASURING = "compiling", "running", "measuring"
Progress = Callable[[dict[str, Any]], None]


@dataclass(frozen=True, slots=True)
class Extent:
    """How far a run goes: so many rounds, or seconds of virtual time."""

    end: int
    is_timed: bool

    def place(self, round: int) -> str:
        """How far it has come, for people."""
        return f"{round:,}/{self.end:,} s of virtual time" if self.is_timed else f"round {round:,}/{self.end:,}"


@contextmanager
def watched(system: str, progress: bool | Progress | None, extent: Extent) -> Iterator[Progress | None]:
    """Who is told how a run of this system goes while the block runs; None if nobody is.

    `progress` is what the caller of `simulate` gave: a watcher, True for a display, False for none, and None for one in
    notebooks only. Nobody waits for a compiler in silence: without a watcher the line is logged.
    """
    if progress is None:
        progress = in_notebook()
    if not isinstance(progress, bool) and not callable(progress):
        refuse("progress", progress, "True, False, or a function of a dict")
    if progress is True:
        from grapevine.sim.display import shown_progress  # here, since nobody else needs rich

        with shown_progress(extent) as tell, told_of_compiling(system, tell):
            yield tell
    elif progress is False:
        with compiling_told(system):
            yield None
    else:
        with told_of_compiling(system, progress):
            yield progress


@contextmanager
def told_of_compiling(system: str, tell: Progress) -> Iterator[None]:
    """Tell a watcher if the system's kernels have to be compiled while the block runs."""
    with compiling_told(system, lambda sentence: tell({"stage": COMPILING, "round": 0, "sentence": sentence})):
        yield


def in_notebook() -> bool:
    """Whether this process is the kernel of a notebook."""
    shell = getattr(sys.modules.get("IPython"), "get_ipython", lambda: None)()
    return hasattr(shell, "kernel")
