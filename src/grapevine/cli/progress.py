"""What a running simulation shows on the error stream: progress for people, or lines of JSON."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Literal

from grapevine.cli.console import err, log_json
from grapevine.sim.display import shown_progress
from grapevine.sim.progress import Extent, Progress


@contextmanager
def live_progress(extent: Extent, *, log: str, quiet: bool) -> Iterator[Progress | Literal[False]]:
    """What `simulate` takes as `progress`: a watcher, or False for none. Who wants to be `quiet` and asks for lines of
    JSON gets these."""
    if log == "json":
        yield log_json
    elif quiet:
        yield False
    else:
        with shown_progress(extent, err) as tell:
            yield tell
