"""A run written down: one line per message and per delivery, for reading and for golden files."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

import msgspec

from grapevine.systems.contracts.peer import Address, Deliver


class Transcript:
    """An observer of `sim.events.Events` (with `watch_sends`). `only` keeps messages of these kinds alone; `write` gets
    each line as it comes, otherwise they are gathered in `lines`. Times are virtual seconds.

    0.120    3 → 0    Join feed=0 position=(1.0, 2.5) session=1 steps=0 periodic=False
    0.171    0 ⇥ 4    Ping …                              lost on the way
    0.205    4 ✓      event 0/17 from 3
    """

    def __init__(self, only: Iterable[str] = (), write: Callable[[str], Any] | None = None) -> None:
        self.lines: list[str] = []
        self._only, self._write = frozenset(only), write

    def _add(self, line: str) -> None:
        if self._write is None:
            self.lines.append(line)
        else:
            self._write(f"{line}\n")

    def sent(self, now: float, sender: Address, to: Address, message: Any, arrives: float | None) -> None:
        """Write down a message that left."""
        if not self._only or type(message).__name__ in self._only:
            arrow = "⇥" if arrives is None else "→"
            self._add(f"{now:9.3f}  {sender:>3} {arrow} {to:<3}  {describe(message)}")

    def received(self, now: float, node: Address, sender: Address, message: Any) -> None:
        """Nothing is written: `sent` has said that the message was on its way."""

    def delivered(self, now: float, node: Address, event: Deliver) -> None:
        """Write down an event that reached an application."""
        how = " (pulled)" if event.pulled else ""
        self._add(f"{now:9.3f}  {node:>3} ✓      event {event.topic}/{event.sequence} from {event.sender}{how}")

    def text(self) -> str:
        """The gathered lines as one text; a golden file is compared with it."""
        return "\n".join(self.lines) + "\n"


def describe(message: Any) -> str:
    """A message as a person reads it: its kind and its fields, numbers short."""
    fields = (f"{field.name}={_short(getattr(message, field.name))}" for field in msgspec.structs.fields(message))
    return " ".join([type(message).__name__, *fields])


def _short(value: Any) -> str:
    if isinstance(value, float):
        return f"{value:.1f}"
    if isinstance(value, bytes):
        return f"{len(value)} bytes"
    if isinstance(value, tuple):
        return f"({', '.join(map(_short, value))})"
    return str(value)
