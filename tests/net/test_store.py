"""The store: what was acknowledged is there after a restart, and what is beyond the retention is not."""

from __future__ import annotations

import asyncio
from dataclasses import replace
from pathlib import Path

import pytest

from grapevine.model.errors import UsageError
from grapevine.net import store as module
from grapevine.net.retention import Retention
from grapevine.net.stamp import fingerprint
from grapevine.net.store import STORE_FILE, Store
from grapevine.net.stored_event import LAST_SEQUENCE
from tests.net.stores import ALICES, BOB, BOBS, HUGE, event, in_store


def test_what_was_appended_is_there_after_a_restart(tmp_path: Path) -> None:
    events = [event(1), event(2), event(1, topic=HUGE), event(7, publisher=BOB, topic=HUGE)]

    async def before(store: Store) -> None:
        assert [await store.append(one) for one in events] == [1, 2, 3, 4]
        assert await store.since(ALICES, 1, 0, 10) == events[:2]

    async def after(store: Store) -> None:
        assert await store.since(ALICES, 1, 0, 10) == events[:2]
        assert await store.since(ALICES, 1, 1, 10) == await store.find(ALICES, 1, [2, 9, -1, 2**70]) == events[1:2]
        assert await store.since(ALICES, 1, 0, 1) == events[:1]
        assert await store.since(BOBS, HUGE, 0, 10) == events[3:]
        assert await store.since(BOBS, 1, 0, 10) == await store.find(BOBS, 1, [1]) == []
        assert await store.last_sequences() == {(ALICES, 1): 2, (ALICES, HUGE): 1, (BOBS, HUGE): 7}
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
        assert await store.since(ALICES, 1, 0, 10) == [event(1), event(2), event(3)]
        assert await store.bytes_by_topic() == {1: 3 * event(1).size}

    in_store(tmp_path, scenario)


def test_missing_are_the_gaps_in_the_last_numbers(tmp_path: Path) -> None:
    async def scenario(store: Store) -> None:
        assert await store.missing(ALICES, 1, 100) == []
        await store.append_all([event(n) for n in (3, 4, 6, 9)])
        assert await store.missing(ALICES, 1, 100) == [1, 2, 5, 7, 8]
        assert await store.missing(ALICES, 1, 5) == [5, 7, 8]
        assert await store.missing(ALICES, 1, 1) == []
        await store.append(event(LAST_SEQUENCE))
        assert await store.missing(ALICES, 1, 3) == [LAST_SEQUENCE - 2, LAST_SEQUENCE - 1]

    in_store(tmp_path, scenario)


def test_own_publications_are_numbered_without_gaps_by_many_tasks_and_after_restarts(tmp_path: Path) -> None:
    async def publish(store: Store) -> list[int]:
        async def one(n: int) -> int:
            published = await store.publish(ALICES, 1, n, lambda number, _: (b"%d" % n, b"signed %d" % number))
            assert published.signature == b"signed %d" % published.sequence
            assert await store.find(ALICES, 1, [published.sequence]) == [published]
            return published.sequence

        return list(await asyncio.gather(*map(one, range(50))))

    async def forget(store: Store) -> None:
        assert await store.trim(10**15) == 50
        assert await store.next_sequence(ALICES, 1) == 51
        assert await store.next_sequence(BOBS, 1) == 1

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
        heads = [fingerprint(number, event(number).payload) for number in (3, 1)]
        assert await store.possessed(1, 100) == [(ALICES, 3, 0, 1, heads[0], False, [])]
        assert await store.possessed(HUGE, 100) == [(ALICES, 1, 0, 1, heads[1], False, [])]

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
        assert [kept.sequence for kept in await store.since(ALICES, 1, 0, 99)] == [5, 6, 7, 8, 9, 10]
        assert await store.trim(15_000) == 0

    in_store(tmp_path, scenario, Retention(age_s=10))


def test_a_topic_and_all_topics_together_have_their_bytes_and_the_oldest_go_first(tmp_path: Path) -> None:
    size = event(1).size

    async def scenario(store: Store) -> None:
        await store.append_all([event(n, time_ms=n) for n in range(1, 7)])
        await store.append_all([event(n, topic=2, time_ms=100 - n) for n in range(1, 4)])
        assert await store.trim(0) == 2 + 2
        assert [kept.sequence for kept in await store.since(ALICES, 1, 0, 99)] == [5, 6]
        assert [kept.sequence for kept in await store.since(ALICES, 2, 0, 99)] == [1, 2, 3]
        assert await store.bytes_by_topic() == {1: 2 * size, 2: 3 * size}

    in_store(tmp_path, scenario, Retention(topic_bytes=4 * size, total_bytes=5 * size))


def test_what_retention_removed_is_neither_missing_nor_taken_again(tmp_path: Path) -> None:
    async def scenario(store: Store) -> None:
        await store.append_all(
            [event(2, time_ms=0), event(4, time_ms=0), event(3, time_ms=9_000), event(7, time_ms=9_000)]
        )
        assert await store.trim(5_000) == 2
        assert await store.missing(ALICES, 1, 100) == [5, 6]
        assert not await store.append(event(2, time_ms=9_000))
        assert not await store.append(event(1, time_ms=9_000))
        assert [kept.sequence for kept in await store.since(ALICES, 1, 0, 9)] == [3, 7]

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
