"""The store: what was acknowledged is there, whatever happens; what is beyond the retention is not."""

from __future__ import annotations

import asyncio
import os
import signal
import sqlite3
import subprocess
import sys
import tempfile
import threading
from collections import Counter, defaultdict
from collections.abc import AsyncIterator, Callable, Coroutine
from contextlib import asynccontextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from random import Random
from typing import Any, TypeVar

import pytest
from hypothesis import given
from hypothesis import strategies as st

from grapevine.model.errors import GrapevineError, UsageError
from grapevine.model.identity import PeerId
from grapevine.net import store as module
from grapevine.net.event_file import EVENT_OVERHEAD, LAST_SEQUENCE, EventFile, Retention, StoredEvent
from grapevine.net.store import STORE_FILE, Store, StoreError
from tests.net import appender

ALICE, BOB = PeerId.of(b"alice"), PeerId.of(b"bob")
HUGE = 2**64 - 1  # a topic is a hash: all 64 bits
Answer = TypeVar("Answer")


def event(sequence: int, *, publisher: PeerId = ALICE, topic: int = 1, time_ms: int = 0, size: int = 4) -> StoredEvent:
    return StoredEvent(publisher, topic, sequence, time_ms, b"x" * size, b"signed")


def in_store(
    folder: Path, scenario: Callable[[Store], Coroutine[Any, Any, Answer]], retention: Retention | None = None
) -> Answer:
    """One life of a store."""

    async def run() -> Answer:
        async with await Store.open(folder, retention) as store:
            return await asyncio.wait_for(scenario(store), 30)

    return asyncio.run(run())


def test_what_was_appended_is_there_after_a_restart(tmp_path: Path) -> None:
    events = [event(1), event(2), event(1, topic=HUGE), event(7, publisher=BOB, topic=HUGE)]

    async def before(store: Store) -> None:
        assert [await store.append(one) for one in events] == [1, 2, 3, 4]
        assert await store.since(ALICE, 1, 0, 10) == events[:2]

    async def after(store: Store) -> None:
        assert await store.since(ALICE, 1, 0, 10) == events[:2]
        assert await store.since(ALICE, 1, 1, 10) == await store.find(ALICE, 1, [2, 9, -1, 2**70]) == events[1:2]
        assert await store.since(ALICE, 1, 0, 1) == events[:1]
        assert await store.since(BOB, HUGE, 0, 10) == events[3:]
        assert await store.since(BOB, 1, 0, 10) == await store.find(BOB, 1, [1]) == []
        assert await store.last_sequences() == {(ALICE, 1): 2, (ALICE, HUGE): 1, (BOB, HUGE): 7}
        assert await store.bytes_by_topic() == {1: 2 * events[0].size, HUGE: 2 * events[0].size}

    in_store(tmp_path, before)
    in_store(tmp_path, after)


def test_an_event_is_kept_once_and_the_first_of_a_number_stays(tmp_path: Path) -> None:
    async def scenario(store: Store) -> None:
        assert await store.append(event(1))
        assert not await store.append(event(1))
        assert not await store.append(replace(event(1), payload=b"another"))
        second, again, known, third = await store.append_all([event(2), event(2), event(1), event(3)])
        assert 0 < second < third and not again and not known
        assert await store.since(ALICE, 1, 0, 10) == [event(1), event(2), event(3)]
        assert await store.bytes_by_topic() == {1: 3 * event(1).size}

    in_store(tmp_path, scenario)


def test_missing_are_the_gaps_in_the_last_numbers(tmp_path: Path) -> None:
    async def scenario(store: Store) -> None:
        assert await store.missing(ALICE, 1, 100) == []
        await store.append_all([event(n) for n in (3, 4, 6, 9)])
        assert await store.missing(ALICE, 1, 100) == [1, 2, 5, 7, 8]
        assert await store.missing(ALICE, 1, 5) == [5, 7, 8]
        assert await store.missing(ALICE, 1, 1) == []
        await store.append(event(LAST_SEQUENCE))
        assert await store.missing(ALICE, 1, 3) == [LAST_SEQUENCE - 2, LAST_SEQUENCE - 1]

    in_store(tmp_path, scenario)


def test_own_publications_are_numbered_without_gaps_by_many_tasks_and_after_restarts(tmp_path: Path) -> None:
    async def publish(store: Store) -> list[int]:
        async def one(n: int) -> int:
            published = await store.publish(ALICE, 1, n, b"%d" % n, lambda number: b"signed %d" % number)
            assert published.signature == b"signed %d" % published.sequence
            assert await store.find(ALICE, 1, [published.sequence]) == [published]
            return published.sequence

        return list(await asyncio.gather(*map(one, range(50))))

    async def forget(store: Store) -> None:
        assert await store.trim(10**15) == 50
        assert await store.next_sequence(ALICE, 1) == 51
        assert await store.next_sequence(BOB, 1) == 1

    assert sorted(in_store(tmp_path, publish)) == list(range(1, 51))
    in_store(tmp_path, forget)
    assert sorted(in_store(tmp_path, publish)) == list(range(51, 101))


def test_subscriptions_are_kept(tmp_path: Path) -> None:
    async def before(store: Store) -> None:
        for topic in (HUGE, 5, 0, 5, 2**63):
            await store.subscribe(topic, f"topic {topic}", topic % 1_000)
        await store.subscribe(0, "topic 0", 999)  # what was said first stays
        await store.unsubscribe(5)
        await store.unsubscribe(6)

    in_store(tmp_path, before)
    kept = {f"topic {topic}": topic % 1_000 for topic in (0, 2**63, HUGE)}
    assert in_store(tmp_path, lambda store: store.subscriptions()) == kept


def test_arrivals_are_read_in_their_order(tmp_path: Path) -> None:
    """A reader that fell behind, or asks for what came since some time, goes on from a number."""

    async def read(store: Store) -> None:
        numbers = await store.append_all([event(n, time_ms=10 * n) for n in (3, 1, 2)])
        await store.append(event(1, topic=HUGE, time_ms=5))
        assert [(one.arrival, one.sequence) for one in await store.arrivals(1, 0, 10)] == list(
            zip(numbers, (3, 1, 2), strict=True)
        )
        assert [one.sequence for one in await store.arrivals(1, numbers[0], 1)] == [1]
        assert await store.last_arrival(1) == numbers[2] and await store.last_arrival(77) == 0
        assert await store.last_arrival(1, before_ms=15) == numbers[1]
        assert await store.possessed(1, 100) == [(event(1).publisher, 3, 0, [])]
        assert await store.possessed(HUGE, 100) == [(event(1).publisher, 1, 0, [])]

    in_store(tmp_path, read)


@pytest.mark.parametrize(
    "wrong", [{"topic": -1}, {"topic": 2**64}, {"sequence": 0}, {"sequence": 2**63}, {"time_ms": 2**63}]
)
def test_numbers_that_do_not_fit_are_refused(wrong: dict[str, int]) -> None:
    with pytest.raises(UsageError, match="cannot be stored; topics have 64 bits"):
        replace(event(1), **wrong)  # type: ignore[arg-type]


# Retention


def test_events_beyond_their_age_go(tmp_path: Path) -> None:
    async def scenario(store: Store) -> None:
        await store.append_all([event(n, time_ms=1_000 * n) for n in range(1, 11)])
        assert await store.trim(15_000) == 4
        assert [kept.sequence for kept in await store.since(ALICE, 1, 0, 99)] == [5, 6, 7, 8, 9, 10]
        assert await store.trim(15_000) == 0

    in_store(tmp_path, scenario, Retention(age_s=10))


def test_a_topic_and_all_topics_together_have_their_bytes_and_the_oldest_go_first(tmp_path: Path) -> None:
    size = event(1).size

    async def scenario(store: Store) -> None:
        await store.append_all([event(n, time_ms=n) for n in range(1, 7)])
        await store.append_all([event(n, topic=2, time_ms=100 - n) for n in range(1, 4)])
        assert await store.trim(0) == 2 + 2
        assert [kept.sequence for kept in await store.since(ALICE, 1, 0, 99)] == [5, 6]
        assert [kept.sequence for kept in await store.since(ALICE, 2, 0, 99)] == [1, 2, 3]
        assert await store.bytes_by_topic() == {1: 2 * size, 2: 3 * size}

    in_store(tmp_path, scenario, Retention(topic_bytes=4 * size, total_bytes=5 * size))


def test_what_retention_removed_is_neither_missing_nor_taken_again(tmp_path: Path) -> None:
    async def scenario(store: Store) -> None:
        await store.append_all(
            [event(2, time_ms=0), event(4, time_ms=0), event(3, time_ms=9_000), event(7, time_ms=9_000)]
        )
        assert await store.trim(5_000) == 2
        assert await store.missing(ALICE, 1, 100) == [5, 6]
        assert not await store.append(event(2, time_ms=9_000))
        assert not await store.append(event(1, time_ms=9_000))
        assert [kept.sequence for kept in await store.since(ALICE, 1, 0, 9)] == [3, 7]

    in_store(tmp_path, scenario, Retention(age_s=1))


def test_retention_works_in_steps_between_which_others_write(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "TRIM_STEP", 10)
    monkeypatch.setattr(module, "BATCH_CHANGES", 1)
    steps: list[int] = []

    async def scenario(store: Store) -> None:
        trim = store._writer.trim
        store._writer.trim = lambda *given: steps.append(trim(*given)) or steps[-1]  # type: ignore[func-returns-value,method-assign]
        await store.append_all([event(n) for n in range(1, 101)])
        trimming = asyncio.create_task(store.trim(10**12))
        await asyncio.sleep(0)
        assert await store.append(event(1, topic=2, time_ms=10**12))
        assert not trimming.done()
        assert await trimming == 100

    in_store(tmp_path, scenario)
    assert steps == [10] * 10 + [0]


def test_the_size_that_retention_counts_is_about_the_size_on_disk(tmp_path: Path) -> None:
    """Otherwise a limit in bytes would be none."""
    for size in (0, 100, 1_000):

        async def scenario(store: Store, size: int = size) -> int:
            now = 1_700_000_000_000
            await store.append_all([event(n, topic=n % 7, time_ms=now + n, size=size) for n in range(1, 5_001)])
            return sum((await store.bytes_by_topic()).values())

        folder = tmp_path / str(size)
        counted = in_store(folder, scenario)
        assert 0.5 < counted / (folder / STORE_FILE).stat().st_size < 2


# Against a model: a dictionary


@dataclass
class Model:
    """What a store should hold, the obvious way."""

    retention: Retention
    kept: dict[tuple[PeerId, int], dict[int, StoredEvent]] = field(default_factory=lambda: defaultdict(dict))
    arrived: dict[StoredEvent, int] = field(default_factory=dict)
    last: Counter[tuple[PeerId, int]] = field(default_factory=Counter)
    floor: Counter[tuple[PeerId, int]] = field(default_factory=Counter)

    def append(self, one: StoredEvent) -> bool:
        stream = one.publisher, one.topic
        if one.sequence <= self.floor[stream] or one.sequence in self.kept[stream]:
            return False
        self.kept[stream][one.sequence] = one
        self.arrived[one] = len(self.arrived)
        self.last[stream] = max(self.last[stream], one.sequence)
        return True

    def all(self) -> list[StoredEvent]:
        found = [one for events in self.kept.values() for one in events.values()]
        return sorted(found, key=lambda one: (one.time_ms, self.arrived[one]))

    def remove(self, one: StoredEvent) -> None:
        stream = one.publisher, one.topic
        del self.kept[stream][one.sequence]
        self.floor[stream] = max(self.floor[stream], one.sequence)

    def bytes(self, topic: int | None = None) -> int:
        return sum(one.size for one in self.all() if topic in (None, one.topic))

    def trim(self, now_ms: int) -> int:
        before = len(self.all())
        for one in self.all():
            if one.time_ms < now_ms - 1_000 * self.retention.age_s:
                self.remove(one)
        for one in self.all():
            if self.bytes(one.topic) > self.retention.topic_bytes:
                self.remove(one)
        for one in self.all():
            if self.bytes() > self.retention.total_bytes:
                self.remove(one)
        return before - len(self.all())

    def missing(self, stream: tuple[PeerId, int], window: int) -> list[int]:
        numbers = range(max(self.floor[stream], self.last[stream] - window) + 1, self.last[stream] + 1)
        return [number for number in numbers if number not in self.kept[stream]]


PUBLISHERS, TOPICS = st.sampled_from([ALICE, BOB]), st.sampled_from([1, HUGE])
EVENTS = st.builds(
    StoredEvent,
    PUBLISHERS,
    TOPICS,
    st.integers(1, 12),
    st.integers(0, 20_000),
    st.binary(max_size=300),
    st.binary(max_size=4),
)
OPERATIONS = st.one_of(
    st.tuples(st.just("append"), EVENTS),
    st.tuples(st.just("append_all"), st.lists(EVENTS, max_size=12)),
    st.tuples(st.just("publish"), st.tuples(PUBLISHERS, TOPICS, st.integers(0, 20_000), st.binary(max_size=300))),
    st.tuples(st.just("trim"), st.integers(0, 30_000)),
    st.tuples(st.just("reopen"), st.none()),
)
LIMIT = EVENT_OVERHEAD * 8


@given(st.lists(OPERATIONS, max_size=25), st.booleans())
def test_a_store_does_what_a_dictionary_would(operations: list[tuple[str, Any]], tight: bool) -> None:
    retention = Retention(age_s=10, topic_bytes=LIMIT, total_bytes=LIMIT * 3 // 2) if tight else Retention(age_s=15)
    model = Model(retention)

    async def run(folder: Path) -> None:
        store = await Store.open(folder, retention)
        for operation, given_ in operations:
            match operation:
                case "append":
                    assert bool(await store.append(given_)) == model.append(given_)
                case "append_all":
                    assert [bool(n) for n in await store.append_all(given_)] == [model.append(one) for one in given_]
                case "publish":
                    publisher, topic, time_ms, payload = given_
                    published = await store.publish(publisher, topic, time_ms, payload, lambda number: b"%d" % number)
                    assert published.sequence == model.last[publisher, topic] + 1
                    assert model.append(published)
                case "trim":
                    assert await store.trim(given_) == model.trim(given_)
                case "reopen":
                    await store.close()
                    store = await Store.open(folder, retention)
        for publisher in (ALICE, BOB):
            for topic in (1, HUGE):
                stream = publisher, topic
                expected = [one for _, one in sorted(model.kept[stream].items())]
                assert await store.since(*stream, 0, 1_000) == expected
                assert await store.since(*stream, 5, 3) == [one for one in expected if one.sequence > 5][:3]
                assert await store.find(*stream, range(1, 40)) == expected
                assert await store.next_sequence(*stream) == model.last[stream] + 1
                for window in (1, 6, 100):
                    assert await store.missing(*stream, window) == model.missing(stream, window)
        assert await store.bytes_by_topic() == {topic: size for topic in (1, HUGE) if (size := model.bytes(topic))}
        assert {key: last for key, last in (await store.last_sequences()).items() if last} == +model.last
        await store.close()

    with tempfile.TemporaryDirectory() as folder:
        asyncio.run(run(Path(folder)))


# The writer


@asynccontextmanager
async def busy_writer(store: Store) -> AsyncIterator[None]:
    """The disk takes its time; meanwhile changes come together."""
    let_go = threading.Event()

    def slow(number: int) -> bytes:
        assert let_go.wait(20)
        return b""

    first = asyncio.ensure_future(store.publish(BOB, 99, 0, b"", slow))
    await asyncio.sleep(0)  # it is the first in the queue
    yield
    let_go.set()
    await first


def test_changes_that_come_together_are_committed_together(tmp_path: Path) -> None:
    commits: list[int] = []

    async def scenario(store: Store) -> None:
        commit = store._writer.commit
        store._writer.commit = lambda: commits.append(1) or commit()  # type: ignore[func-returns-value,method-assign]
        async with busy_writer(store):
            appends = [asyncio.ensure_future(store.append(event(n))) for n in range(1, 501)]
            acknowledged, _ = await asyncio.wait(appends, timeout=0.01)
            assert not acknowledged  # nothing is before its commit
            assert await store.since(ALICE, 1, 0, 1) == []  # and questions do not wait
        assert await asyncio.gather(*appends) == list(range(2, 502))  # the busy writer has the first
        assert len(await store.since(ALICE, 1, 0, 1_000)) == 500

    in_store(tmp_path, scenario)
    assert len(commits) <= 3


def test_what_is_added_and_removed_in_one_transaction_is_counted_right(tmp_path: Path) -> None:
    async def scenario(store: Store) -> None:
        async with busy_writer(store):
            added = asyncio.ensure_future(store.append_all([event(n, time_ms=n) for n in range(1, 11)]))
            trimmed = asyncio.ensure_future(store.trim(1_005))
            added_again = asyncio.ensure_future(store.append(event(11, time_ms=11)))
            await asyncio.sleep(0)
        assert await added == list(range(2, 12))
        assert await added_again
        assert await trimmed == 1 + 4  # one is that of the busy writer
        assert await store.bytes_by_topic() == {1: 7 * event(1).size}

    in_store(tmp_path, scenario, Retention(age_s=1))


def test_a_signature_that_fails_is_nobody_elses_matter(tmp_path: Path) -> None:
    async def scenario(store: Store) -> None:
        def refuse(number: int) -> bytes:
            raise KeyError("no key")

        async with busy_writer(store):
            good = asyncio.ensure_future(store.append(event(1)))
            bad = asyncio.ensure_future(store.publish(BOB, 1, 0, b"", refuse))
            also_good = asyncio.ensure_future(store.publish(BOB, 1, 0, b"", lambda number: b"fine"))
            await asyncio.sleep(0)
        assert await good
        with pytest.raises(KeyError, match="no key"):
            await bad
        assert (await also_good).sequence == 1

    in_store(tmp_path, scenario)


def test_who_stops_waiting_disturbs_nobody(tmp_path: Path) -> None:
    async def scenario(store: Store) -> None:
        async with busy_writer(store):
            given_up, waiting = (asyncio.ensure_future(store.append(event(n))) for n in (1, 2))
            await asyncio.sleep(0)
            given_up.cancel()
        assert await waiting
        assert [kept.sequence for kept in await store.since(ALICE, 1, 0, 9)] == [1, 2]

    in_store(tmp_path, scenario)


def test_closing_finishes_what_was_begun_and_then_refuses(tmp_path: Path) -> None:
    async def run() -> None:
        store = await Store.open(tmp_path)
        appends = [asyncio.ensure_future(store.append(event(n))) for n in range(1, 101)]
        await asyncio.sleep(0)
        await asyncio.gather(store.close(), store.close())
        assert await asyncio.gather(*appends) == list(range(1, 101))
        for call in (store.append(event(101)), store.subscriptions(), store.trim(0)):
            with pytest.raises(UsageError, match="the store is closed; open it again"):
                await call

    asyncio.run(run())

    async def after(store: Store) -> int:
        return len(await store.since(ALICE, 1, 0, 1_000))

    assert in_store(tmp_path, after) == 100


def test_a_full_disk_fails_what_is_written_and_nothing_else(tmp_path: Path) -> None:
    async def scenario(store: Store) -> None:
        await store.append(event(1))
        (pages,) = store._writer._sql.execute("PRAGMA page_count").fetchone()
        store._writer._sql.execute(f"PRAGMA max_page_count = {pages + 2}")
        with pytest.raises(StoreError, match=r"cannot be used \(database or disk is full\); see what else uses it"):
            await store.append_all([event(2), event(3, size=100_000)])
        assert await store.since(ALICE, 1, 0, 9) == [event(1)]
        assert await store.bytes_by_topic() == {1: event(1).size}
        assert await store.append(event(2))
        store._writer._sql.execute("PRAGMA max_page_count = 1000000")
        assert await store.append(event(3, size=100_000))

    in_store(tmp_path, scenario)


def test_a_commit_waits_for_the_disk(tmp_path: Path) -> None:
    file = EventFile(tmp_path / STORE_FILE)
    assert file._sql.execute("PRAGMA synchronous").fetchone() == (2,)  # FULL
    assert file._sql.execute("PRAGMA journal_mode").fetchone() == ("wal",)
    file.close()


# Crashes


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
        await store.since(ALICE, 1, 0, 10**6)
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
        newer.execute("PRAGMA user_version = 2")
    newer.close()
    assert "has version 2 of the layout, this program version 1" in refusal(tmp_path)


def test_a_folder_that_cannot_be_used_is_refused(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("in the way")
    assert "cannot hold a store" in refusal(tmp_path / "file")
    (tmp_path / "node" / STORE_FILE).mkdir(parents=True)
    assert "cannot be opened" in refusal(tmp_path / "node")
