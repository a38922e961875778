"""The store's writer: changes that come together are one transaction, and who fails or leaves disturbs nobody."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from grapevine.model.errors import UsageError
from grapevine.net.event_file import EventFile
from grapevine.net.retention import Retention
from grapevine.net.store import STORE_FILE, Store, StoreError
from tests.net.stores import ALICES, BOBS, event, in_store, making


@asynccontextmanager
async def busy_writer(store: Store) -> AsyncIterator[None]:
    """The disk takes its time; meanwhile changes come together."""
    let_go = threading.Event()

    def slow(number: int, before: bytes) -> tuple[bytes, bytes]:
        assert let_go.wait(20)
        return b"", b""

    first = asyncio.ensure_future(store.publish(BOBS, 99, 0, slow))
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
            assert await store.since(ALICES, 1, 0, 1) == []  # and questions do not wait
        assert await asyncio.gather(*appends) == list(range(2, 502))  # the busy writer has the first
        assert len(await store.since(ALICES, 1, 0, 1_000)) == 500

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
        def refuse(number: int, before: bytes) -> tuple[bytes, bytes]:
            raise KeyError("no key")

        async with busy_writer(store):
            good = asyncio.ensure_future(store.append(event(1)))
            bad = asyncio.ensure_future(store.publish(BOBS, 1, 0, refuse))
            also_good = asyncio.ensure_future(store.publish(BOBS, 1, 0, making(b"", b"fine")))
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
        assert [kept.sequence for kept in await store.since(ALICES, 1, 0, 9)] == [1, 2]

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
        return len(await store.since(ALICES, 1, 0, 1_000))

    assert in_store(tmp_path, after) == 100


def test_a_full_disk_fails_what_is_written_and_nothing_else(tmp_path: Path) -> None:
    async def scenario(store: Store) -> None:
        await store.append(event(1))
        (pages,) = store._writer._sql.execute("PRAGMA page_count").fetchone()
        store._writer._sql.execute(f"PRAGMA max_page_count = {pages + 2}")
        with pytest.raises(StoreError, match=r"cannot be used \(database or disk is full\); see what else uses it"):
            await store.append_all([event(2), event(3, size=100_000)])
        assert await store.since(ALICES, 1, 0, 9) == [event(1)]
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
