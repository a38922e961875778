"""The command in two ways: inside this process, which costs no start-up, or as a user starts it."""

from __future__ import annotations

import io
import os
import subprocess
import sys
from contextlib import chdir, redirect_stderr, redirect_stdout
from pathlib import Path
from typing import NamedTuple
from unittest.mock import patch

from grapevine.cli import console
from grapevine.cli.console import one_line_errors
from grapevine.cli.main import app

COMMAND = [sys.executable, "-m", "grapevine"]
WIDE_AND_PLAIN = {"COLUMNS": "200", "NO_COLOR": "1", "TERM": "dumb"}
PATIENCE_S = 300.0  # a cold start imports and compiles, and may start a Spark; the machine may be busy


class Answer(NamedTuple):
    """How a command ended, and what it said."""

    returncode: int
    stdout: str
    stderr: str


def run(*arguments: str, cwd: Path | None = None, input: str = "") -> Answer:
    """The command with these arguments, in this process: all of it but `main`, which sets signal handlers.

    A command that uses Spark needs whole paths: a session that runs already keeps the working folder it began in.
    """
    code, said, complained = 0, io.StringIO(), io.StringIO()
    with (
        patch.dict(os.environ, WIDE_AND_PLAIN),
        patch.multiple(console.out, _width=200),
        patch.multiple(console.err, _width=200),
        patch.object(sys, "stdin", io.TextIOWrapper(io.BytesIO(input.encode()))),
        chdir(cwd or Path.cwd()),
        redirect_stdout(said),
        redirect_stderr(complained),
    ):
        try:
            with one_line_errors():
                app(list(arguments))
        except SystemExit as ended:
            code = ended.code if isinstance(ended.code, int) else int(ended.code is not None)
    return Answer(code, said.getvalue(), complained.getvalue())


def run_process(*arguments: str, cwd: Path | None = None, input: str | None = None) -> Answer:
    """The command as a process of its own."""
    done = subprocess.run(
        [*COMMAND, *arguments],
        capture_output=True,
        text=True,
        cwd=cwd,
        env=os.environ | WIDE_AND_PLAIN,
        input=input,
        timeout=PATIENCE_S,
        check=False,
    )
    return Answer(done.returncode, done.stdout, done.stderr)
