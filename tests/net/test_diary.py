"""The diary: every line is one record, whatever happened to the line before it."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from itertools import count
from pathlib import Path
from typing import Any

import pytest

from grapevine.model.errors import UsageError
from grapevine.net import diary as module
from grapevine.net.diary import Diary, DiaryError

NODE, OTHER, TOPIC = 2**64 - 1, 17, 2**63 + 1  # all 64 bits


def lines(diary: Diary) -> list[dict[str, Any]]:
    return [json.loads(line) for line in diary.path.read_text().splitlines()]


def test_each_record_is_a_line_with_its_time_and_ids_in_hexadecimal(tmp_path: Path) -> None:
    diary = Diary(tmp_path / "new", NODE, clock_us=count(1).__next__)
    diary.session("vitis", {"table_size": 15, "name": None})
    diary.subscribed(TOPIC, "weather")
    diary.unsubscribed(OTHER)
    diary.published(TOPIC, NODE, 3, 4)
    diary.received(TOPIC, OTHER, 4, OTHER, wanted=True, again=False)
    diary.delivered(TOPIC, OTHER, 4, OTHER, pulled=True)
    diary.links([(OTHER, "friend")], 2)
    diary.traffic({"Ask": 5}, messages_in=1, messages_out=5, bytes_in=10, bytes_out=50)
    diary.leaving()
    diary.end()
    diary.close()
    node, other, topic = "ffffffffffffffff", "0000000000000011", "8000000000000001"
    event = {"topic": topic, "publisher": other, "sequence": 4, "sender": other}
    assert diary.path == tmp_path / "new" / f"{node}.jsonl"
    assert lines(diary) == [
        {"what": "session", "time": 1, "node": node, "system": "vitis", "config": {"table_size": 15, "name": None}},
        {"what": "subscribed", "time": 2, "topic": topic, "name": "weather"},
        {"what": "unsubscribed", "time": 3, "topic": other},
        {"what": "published", "time": 4, "topic": topic, "publisher": node, "sequence": 3},
        {"what": "received", "time": 4, **event, "wanted": True, "again": False},
        {"what": "delivered", "time": 5, **event, "pulled": True},
        {"what": "links", "time": 6, "links": [[other, "friend"]], "neighbours": 2},
        {
            "what": "traffic",
            "time": 7,
            "sent": {"Ask": 5},
            "messages_in": 1,
            "messages_out": 5,
            "bytes_in": 10,
            "bytes_out": 50,
        },
        {"what": "leaving", "time": 8},
        {"what": "end", "time": 9},
    ]


def test_sessions_append_and_begin_on_a_new_line_after_one_that_was_cut_off(tmp_path: Path) -> None:
    for sequence in (1, 2):
        diary = Diary(tmp_path, NODE)
        diary.published(TOPIC, NODE, sequence, 0)
        diary.close()
    with diary.path.open("a") as file:
        file.write('{"what":"recei')
    diary = Diary(tmp_path, NODE)
    diary.published(TOPIC, NODE, 3, 0)
    diary.close()
    text = diary.path.read_text().splitlines()
    assert text.pop(2) == '{"what":"recei'
    assert [json.loads(line)["sequence"] for line in text] == [1, 2, 3]


def test_what_was_flushed_survives_kill_9(tmp_path: Path) -> None:
    program = (
        "import os, signal, sys, pathlib; from grapevine.net.diary import Diary\n"
        "diary = Diary(pathlib.Path(sys.argv[1]), 5); diary.subscribed(1); diary.flush(); diary.subscribed(2)\n"
        "os.kill(os.getpid(), signal.SIGKILL)"
    )
    killed = subprocess.run([sys.executable, "-c", program, str(tmp_path)], check=False, env=os.environ)
    assert killed.returncode == -signal.SIGKILL
    (line,) = (tmp_path / "0000000000000005.jsonl").read_text().splitlines()
    assert json.loads(line)["topic"] == f"{1:016x}"


def test_a_full_disk_loses_nothing_that_there_is_room_for_and_counts_the_rest(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(file: int, content: bytearray) -> int:
        if refused:
            raise refused.pop()
        return write(file, bytes(content[:10]))  # a disk may take a part

    refused, write = [OSError(28, "No space left on device")], os.write
    monkeypatch.setattr(os, "write", full)
    monkeypatch.setattr(module, "MOST_WAITING", 100)
    diary = Diary(tmp_path, NODE)
    for sequence in range(5):
        diary.published(TOPIC, NODE, sequence, 0)
    with pytest.raises(DiaryError, match="No space left"):
        diary.flush()
    diary.close()
    *kept, last = lines(diary)
    assert [record["sequence"] for record in kept] == list(range(len(kept)))
    assert (last["what"], last["records"]) == ("lost", 5 - len(kept))
    assert len(kept) < 5


def test_a_folder_that_cannot_be_and_a_closed_diary_are_the_callers_mistakes(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(UsageError, match="choose another"):
        Diary(tmp_path / "file", NODE)
    diary = Diary(tmp_path, NODE)
    diary.close()
    diary.close()
    with pytest.raises(UsageError, match="closed"):
        diary.flush()
