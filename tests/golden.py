"""Golden transcripts: a short story of a few nodes, message by message, compared with a file that people read.

    story = Story({Join, JoinOk})
    engine = Events(delay, observer=story, watch_sends=True)
    story.chapter("A node joins (§4.2).")
    engine.run(until=2.0)
    assert_golden(Path(__file__).with_name("join.transcript"), HEADER, story)

A mismatch fails with a diff. Whoever meant the change accepts it by running the same test with GRAPEVINE_REWRITE=1 and
looks at the difference in the file before committing it.
"""

from __future__ import annotations

import difflib
import os
import textwrap
from collections.abc import Callable, Collection
from pathlib import Path
from typing import Any

import pytest

from grapevine.sim.transcript import Transcript
from grapevine.systems.contracts.peer import Address

REWRITE = "GRAPEVINE_REWRITE"
MOST_LINES = 150  # of a file: beyond that nobody reads it
Telling = Callable[[Address, Address, Any], Any | None]  # (sender, target, message) → what to show; None: leave it out


class Story(Transcript):
    """A transcript in chapters. It shows messages of these kinds; `tell` may leave some out, or show them in a form
    with other fields where the message itself has bytes."""

    def __init__(self, kinds: Collection[type], tell: Telling | None = None) -> None:
        super().__init__()
        self.kinds = frozenset(kinds)
        self._tell = tell

    def chapter(self, title: str) -> None:
        """From here on another part of the story is told: what happens, and the section of the paper that says so."""
        self.lines += ["", *comment(title)]

    def sent(self, now: float, sender: Address, to: Address, message: Any, arrives: float | None) -> None:
        """Show a message, if it is one to be shown."""
        shown = message if type(message) in self.kinds else None
        if shown is not None and self._tell is not None:
            shown = self._tell(sender, to, message)
        if shown is not None:
            super().sent(now, sender, to, shown, arrives)


def comment(text: str) -> list[str]:
    """A text as lines that begin with a hash; a blank line in it stays one."""
    paragraphs = textwrap.dedent(text).strip().split("\n\n")
    wrapped = [textwrap.wrap(" ".join(paragraph.split()), 108) for paragraph in paragraphs]
    return [f"# {line}".rstrip() for at, lines in enumerate(wrapped) for line in ([""] if at else []) + lines]


def assert_golden(golden: Path, header: str, story: Story) -> None:
    """The story is the one in the file. With GRAPEVINE_REWRITE=1 the file is written first."""
    shown = f"Shown: {', '.join(sorted(kind.__name__ for kind in story.kinds))}, and deliveries (✓)."
    text = "\n".join([*comment(f"{header}\n\n{shown}"), *story.lines]) + "\n"
    assert text.count("\n") <= MOST_LINES, f"{golden.name} would have {text.count(chr(10))} lines: tell less"
    if os.environ.get(REWRITE):
        golden.write_text(text, encoding="utf-8")
    before = golden.read_text(encoding="utf-8") if golden.exists() else ""
    if text != before:
        pytest.fail(difference(golden.name, before, text), pytrace=False)


def difference(name: str, before: str, after: str) -> str:
    """What changed, as a person reads it, and how to accept it."""
    lines = difflib.unified_diff(before.splitlines(), after.splitlines(), name, "this run", lineterm="", n=2)
    test = os.environ.get("PYTEST_CURRENT_TEST", "the test").split(" ")[0]
    return "\n".join(
        [
            f"The peers no longer say what {name} has written down:",
            "",
            *lines,
            "",
            f"If that is meant: {REWRITE}=1 .venv/bin/pytest {test}",
        ]
    )
