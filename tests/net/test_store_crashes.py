"""The store when things go wrong: killed, damaged, foreign, without a place."""

from __future__ import annotations

import os
import signal
import sqlite3
import subprocess
import sys
from collections import Counter
from pathlib import Path
from random import Random

import pytest

from grapevine.model.errors import GrapevineError
from grapevine.net.store import STORE_FILE, Store
from tests.net import appender
from tests.net.stores import ALICES, event, in_store


def test_what_was_acknowledged_survives_kill_9(tmp_path: Path) -> None:
    """Twenty times the same store is written by a process that is killed at some moment."""
    random = Random(9)
    acknowledged: Counter[int] = Counter()  # by topic
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
    command = [sys.executable, "-m", "tests.net.appender"]
    with subprocess.Popen(command, stdin=-1, stdout=-1, text=True, bufsize=1, env=environment) as process:
        assert process.stdin and process.stdout
        for _ in range(20):
            print(tmp_path, file=process.stdin, flush=True)
            pid, left = None, random.randrange(120)
            for line in process.stdout:
                match line.split():
                    case ["pid", number]:
                        pid = int(number)
                    case ["dead"]:
                        break
                    case [topic, sequence]:
                        assert int(sequence) > acknowledged[int(topic)]
                        acknowledged[int(topic)] = int(sequence)
                        left -= 1
                if pid is not None and left <= 0:
                    os.kill(pid, signal.SIGKILL)
                    pid = None

            async def all_there(store: Store) -> None:
                for topic, last in acknowledged.items():
                    events = await store.since(appender.PUBLISHER, topic, 0, 10**6)
                    assert [one.sequence for one in events] == list(range(1, len(events) + 1))
                    assert len(events) >= last
                    assert all(one.payload == appender.payload_of(topic, one.sequence) for one in events)
                    assert await store.next_sequence(appender.PUBLISHER, topic) == len(events) + 1
                    acknowledged[topic] = len(events)  # written, though nobody was told

            in_store(tmp_path, all_there)
        process.stdin.close()
    assert sum(acknowledged.values()) > 200


def refusal(folder: Path) -> str:
    """Why a store cannot be opened, or read; always one sentence of ours."""

    async def scenario(store: Store) -> None:
        await store.since(ALICES, 1, 0, 10**6)
        await store.append_all([event(n) for n in range(3_000, 4_000)])

    with pytest.raises(GrapevineError) as refused:
        in_store(folder, scenario)
    assert "\n" not in str(refused.value)
    return str(refused.value)


def test_a_damaged_file_is_refused_with_one_sentence(tmp_path: Path) -> None:
    async def fill(store: Store) -> None:
        await store.append_all([event(n, size=300) for n in range(1, 2_000)])

    in_store(tmp_path, fill)
    path = tmp_path / STORE_FILE
    good = path.read_bytes()

    path.write_bytes(b"garbage" * 1_000)
    assert refusal(tmp_path) == (
        f"{path}: is damaged (file is not a database); restore it, or move it away to start empty"
    )
    path.write_bytes(good[:100])
    assert "is damaged" in refusal(tmp_path)
    path.write_bytes(good[: len(good) // 2])
    assert "malformed" in refusal(tmp_path)
    path.write_bytes(good[:8_192] + b"\xff" * (len(good) - 8_192))
    assert "malformed" in refusal(tmp_path)


def test_a_file_of_another_program_or_version_is_left_alone(tmp_path: Path) -> None:
    path = tmp_path / STORE_FILE
    with sqlite3.connect(path) as other:
        other.execute("CREATE TABLE somebody_elses (x)")
    other.close()
    assert "is a database of another program" in refusal(tmp_path)
    path.unlink()
    in_store(tmp_path, lambda store: store.subscribe(1, "one", 0))
    with sqlite3.connect(path) as newer:
        (version,) = newer.execute("PRAGMA user_version").fetchone()
        newer.execute(f"PRAGMA user_version = {version + 1}")
    newer.close()
    assert f"has version {version + 1} of the layout, this program version {version}" in refusal(tmp_path)


def test_a_folder_that_cannot_be_used_is_refused(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("in the way")
    assert "cannot hold a store" in refusal(tmp_path / "file")
    (tmp_path / "node" / STORE_FILE).mkdir(parents=True)
    assert "cannot be opened" in refusal(tmp_path / "node")
