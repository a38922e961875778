"""What a run in parts keeps of itself after every round, so that one that was killed goes on where it was.

Rows are in files anyway; what is kept beside them is what the process that leads the run has in its memory: who is
online, what the system keeps beyond links, and what was measured so far. The note, written last, makes a round
complete; whatever it does not name is removed, or was left by a run that was killed, and is written again.
"""

from __future__ import annotations

import hashlib
import json
import shutil
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from grapevine.model.errors import UsageError
from grapevine.sim.parts import files
from grapevine.sim.parts.network import PartedNetwork
from grapevine.sim.round_run import Course
from grapevine.sim.rounds import Rounds

_LEADER = "leader"  # the folder of what the leading process keeps


class Keeper:
    """Keeps the rounds of one run in its folder. `described` is what the run is: another one cannot go on from it."""

    def __init__(self, folder: Path, described: dict[str, Any]) -> None:
        self._folder, self._described = folder, json.loads(json.dumps(described))

    def keep(self, engine: Rounds, course: Course) -> None:
        """After a round and its measurements: from now on the run can go on from here. Earlier rounds are removed."""
        network = _parted(engine)
        version, measured, columns = network.put_away(), *course.saved()
        arrays: dict[str, NDArray[Any]] = {f"network-{name}": array for name, array in network.presence().items()}
        arrays |= {f"system-{name}": array for name, array in engine.system.saved().items()}
        arrays |= {f"measured-{name}": array for name, array in columns.items()}
        files.store(self._folder / _LEADER / str(network.now), arrays)
        note = {
            "run": self._described,
            "round": network.now,
            "rows": version,
            "joined": engine.joined,
            "left": engine.left,
            "bytes_sent": network.bytes_sent,
            "measured": measured,
        }
        files.write_note(self._folder, note)
        for kind, kept in (("rows", version), (_LEADER, str(network.now))):
            for found in (self._folder / kind).iterdir():
                if found.name != kept:
                    shutil.rmtree(found, ignore_errors=True)

    def go_on(self, engine: Rounds, course: Course) -> bool:
        """Bring a fresh engine and course to the last complete round; False if there is none.

        UsageError if another run is in the folder: it says what differs.
        """
        note = files.read_note(self._folder)
        if note is None:
            return False
        differs = sorted(name for name in self._described if note["run"].get(name) != self._described[name])
        if differs:
            raise UsageError(
                f"--resume: {self._folder} is of a run with other values of {', '.join(differs)}; "
                "give those, or start anew with --force"
            )
        network, found = _parted(engine), files.fetch(self._folder / _LEADER / str(note["round"]))

        def those_of(kind: str) -> dict[str, NDArray[Any]]:
            return {name.removeprefix(kind): array for name, array in found.items() if name.startswith(kind)}

        network.go_on(note["round"], note["rows"], note["bytes_sent"], those_of("network-"))
        engine.joined, engine.left = note["joined"], note["left"]
        engine.system.restore(those_of("system-"))
        course.restore(note["measured"], those_of("measured-"))
        return True


def _parted(engine: Rounds) -> PartedNetwork:
    assert isinstance(engine.network, PartedNetwork)
    return engine.network


def digest_of(*arrays: NDArray[Any]) -> str:
    """A short text that tells these arrays from others."""
    found = hashlib.sha256()
    for array in arrays:
        found.update(np.ascontiguousarray(array).data)
    return found.hexdigest()[:16]
