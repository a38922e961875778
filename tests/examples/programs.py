"""Examples as a user starts them: processes of their own, in an empty folder, with nothing left behind at the end."""

from __future__ import annotations

import os
import queue
import signal
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO

EXAMPLES = Path(__file__).parents[2] / "examples"
PATIENCE_S = 300.0  # a cold start imports and compiles; the machine may be busy


class Program:
    """An example that runs. Its output is read as it comes; whatever it says on standard error is kept."""

    def __init__(self, name: str, *arguments: str, folder: Path) -> None:
        self.scratch, self.work = folder / "scratch", folder / "work"
        for made in (self.scratch, self.work):
            made.mkdir(exist_ok=True)
        self._errors = (folder / f"{name}-{len(list(folder.iterdir()))}.stderr").open("w+")
        self.process = subprocess.Popen(
            [sys.executable, str(EXAMPLES / name), *arguments],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=self._errors,
            text=True,
            cwd=self.work,
            env=os.environ | {"TMPDIR": str(self.scratch), "NO_COLOR": "1"},
        )
        self.lines: list[str] = []
        self._coming = queue.Queue[str | None]()
        assert self.process.stdout is not None
        self._reader = threading.Thread(target=self._read, args=(self.process.stdout,), daemon=True)
        self._reader.start()

    def _read(self, output: IO[str]) -> None:
        for line in output:
            self._coming.put(line.rstrip("\n"))
        self._coming.put(None)  # the end

    def until(self, text: str) -> str:
        """The next line that holds this text; fails if the program ends without it."""
        while (line := self._coming.get(timeout=PATIENCE_S)) is not None:
            self.lines.append(line)
            if text in line:
                return line
        raise AssertionError(f"no {text!r} in {self.lines}; {self.complaints()}")

    def type(self, line: str) -> None:
        """Write a line to its standard input."""
        assert self.process.stdin is not None
        self.process.stdin.write(line + "\n")
        self.process.stdin.flush()

    def end_input(self) -> None:
        """Close its standard input, as Ctrl-D does."""
        assert self.process.stdin is not None
        self.process.stdin.close()

    def finish(self, by: signal.Signals | None = None) -> int:
        """Send it a signal, if one is given; wait for its end and take the rest of its output. Returns its code."""
        if by is not None:
            self.process.send_signal(by)
        code = self.process.wait(PATIENCE_S)
        self._reader.join(PATIENCE_S)
        while not self._coming.empty():
            line = self._coming.get()
            self.lines += [] if line is None else [line]
        return code

    def complaints(self) -> str:
        """What it said on standard error."""
        self._errors.seek(0)
        return self._errors.read()

    def left_behind(self) -> list[Path]:
        """What lies in the folder it was started in, and among temporary files, now."""
        return [*self.work.rglob("*"), *self.scratch.rglob("*")]

    def close(self) -> None:
        """Kill it if it still runs."""
        self.process.kill()
        self.process.wait(PATIENCE_S)
        for stream in (self.process.stdin, self.process.stdout):
            assert stream is not None
            stream.close()
        self._errors.close()


@contextmanager
def started(name: str, *arguments: str, folder: Path) -> Iterator[Program]:
    """An example with these arguments, in this folder; killed if the test does not end it."""
    program = Program(name, *arguments, folder=folder)
    try:
        yield program
    finally:
        program.close()
