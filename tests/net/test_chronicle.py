"""What a node remembers having done: counts always, lines if it keeps a diary, and a full disk stops nothing."""

from __future__ import annotations

import json
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from grapevine.model.identity import PeerId
from grapevine.net.chronicle import Chronicle
from grapevine.net.diary import Diary, DiaryError
from grapevine.net.stored_event import StoredEvent
from grapevine.net.traffic import Traffic
from grapevine.systems.contracts.peer import Effects, Peer

ME, OTHER = PeerId.of(b"me"), PeerId.of(b"other")


class Neighbour(Peer):
    """Has chosen one node, and was chosen by another."""

    def start(self, now: float) -> Effects:
        return []

    def on_message(self, now: float, sender: int, message: Any) -> Effects:
        return []

    def on_timer(self, now: float, timer: Any) -> Effects:
        return []

    def roles(self) -> dict[int, list[str]]:
        return {1: ["friend"], 2: ["reverse"]}


def event(publisher: PeerId) -> StoredEvent:
    return StoredEvent(publisher, 7, 1, 0, b"", b"")


def lines(folder: Path) -> list[dict[str, Any]]:
    (path,) = folder.iterdir()
    return [json.loads(line) for line in path.read_text().splitlines()]


def test_what_happens_is_counted_and_written_down(tmp_path: Path) -> None:
    chronicle = Chronicle(ME, Diary(tmp_path, ME.address))
    chronicle.on_start("vitis", {})
    chronicle.on_subscribed(7, "x")
    chronicle.on_published(event(ME), 5)
    chronicle.on_delivered(event(ME), ME.address, pulled=False)
    chronicle.on_received(event(OTHER), 2, wanted=True, again=False)
    chronicle.on_delivered(event(OTHER), 2, pulled=False)
    chronicle.on_unsubscribed(7, "x")
    chronicle.write(Neighbour(), Traffic(Counter(Seek=2), Counter(Hello=1), 10, 20))
    chronicle.close(Traffic(Counter(Seek=3), Counter(Hello=1), 10, 25))
    assert (chronicle.published, chronicle.delivered) == (1, 2)
    whole = lines(tmp_path)
    kinds = ["session", "subscribed", "published", "received", "delivered", "unsubscribed", "links", "traffic"]
    kinds += ["traffic", "end"]
    assert [line["what"] for line in whole] == kinds, "an event of its own is delivered, but no line of a delivery"
    assert whole[6]["links"] == [["0000000000000001", "friend"]] and whole[6]["neighbours"] == 2
    assert whole[2]["time"] == 5, "a publication is dated when it was asked for, not when the disk had it"
    assert whole[7]["sent"] == {"Seek": 2} and whole[7]["bytes_out"] == 20
    assert whole[8]["sent"] == {"Seek": 1} and whole[8]["bytes_out"] == 5


def test_links_are_noted_for_the_last_time_before_the_node_leaves(tmp_path: Path) -> None:
    chronicle, peer = Chronicle(ME, Diary(tmp_path, ME.address)), Neighbour()
    chronicle.write(peer, Traffic())
    chronicle.on_leaving(peer, Traffic())
    chronicle.write(peer, Traffic())  # the chore of every second, while the node leaves
    chronicle.close(Traffic(bytes_out=5))  # a farewell
    kinds = [line["what"] for line in lines(tmp_path)]
    assert kinds == ["links", "traffic", "links", "traffic", "leaving", "traffic", "traffic", "end"]


def test_without_a_diary_only_counts_are_kept(tmp_path: Path) -> None:
    chronicle = Chronicle(ME, None)
    chronicle.on_start("vitis", {})
    chronicle.on_published(event(ME), 5)
    chronicle.write(Neighbour(), Traffic())
    chronicle.close(Traffic())
    assert chronicle.published == 1


def test_a_diary_that_cannot_be_written_is_logged_and_goes_on(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    diary = Diary(tmp_path, ME.address)
    chronicle = Chronicle(ME, diary)

    def full() -> None:
        raise DiaryError("the disk is full")

    with monkeypatch.context() as patch:
        patch.setattr(diary, "flush", full)
        chronicle.write(Neighbour(), Traffic())
    assert "the disk is full" in caplog.text
    chronicle.close(Traffic())
    assert [line["what"] for line in lines(tmp_path)] == ["links", "traffic", "end"], "nothing was said since"


def test_traffic_is_told_since_the_last_time() -> None:
    traffic = Traffic()
    traffic.sent["Seek"], traffic.bytes_out = 3, 30
    before = traffic.copy()
    traffic.sent["Seek"] += 2
    traffic.received["Hello"] += 1
    traffic.bytes_in += 7
    assert traffic.since(before) == {
        "sent": {"Seek": 2},
        "messages_out": 2,
        "messages_in": 1,
        "bytes_in": 7,
        "bytes_out": 0,
    }
