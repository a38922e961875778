"""The chat: three processes in a room, over real pipes and sockets."""

from __future__ import annotations

import signal
from pathlib import Path

from tests.examples.programs import Program, started


def address(program: Program) -> str:
    """Where others join it, as it prints it."""
    return program.until("you are in tea").split()[-1]


def test_all_in_a_room_hear_each_other_whenever_they_came_and_leave_as_they_like(tmp_path: Path) -> None:
    room = "chat.py", "--room", "tea", "--name"
    with started(*room, "ann", folder=tmp_path) as ann:
        at = address(ann)
        ann.type("is anybody there?")
        with started(*room, "bob", "--join", at, folder=tmp_path) as bob:
            heard = bob.until("is anybody there?")
            assert " ann (" in heard, "what was said before one came is told"
            bob.type("grüß dich\x1b[2J")
            assert ann.until("grüß dich").endswith("grüß dich[2J"), "no control character reaches the terminal"
            with started(*room, "ann", "--join", at, folder=tmp_path) as other:
                told = {other.until(": ").rpartition(": ")[2] for _ in range(2)}
                assert told == {"is anybody there?", "grüß dich[2J"}
                other.type("me, too")
                again = bob.until("me, too")
                assert again.split("(")[1][:4] != heard.split("(")[1][:4], "two who are called ann are told apart"
                ann.until("me, too")
                other.end_input()
                assert (other.finish(), other.complaints()) == (0, "")
            assert (bob.finish(signal.SIGINT), bob.complaints()) == (0, "")
        assert (ann.finish(signal.SIGTERM), ann.complaints()) == (0, "")
        assert "is anybody there?" not in " ".join(ann.lines), "nobody is told what she said herself"
        assert not ann.left_behind()


def test_a_mistake_is_one_line(tmp_path: Path) -> None:
    with started("chat.py", "--room", "tea", "--name", "ann", "--join", "nowhere", folder=tmp_path) as ann:
        assert ann.finish() == 1
        assert ann.complaints() == "error: 'nowhere' is no endpoint; give HOST:PORT, e.g. 127.0.0.1:7000\n"
