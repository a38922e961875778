"""Named readers: where one left off, the next goes on; whatever cannot be had any more is said, in its place."""

from __future__ import annotations

import asyncio
import sqlite3
import tempfile
from collections.abc import Callable, Coroutine
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from grapevine.model.errors import UsageError
from grapevine.model.identity import PeerId
from grapevine.net import Event, Gap, Reader
from grapevine.net.ledger import Ledger
from grapevine.net.reader import acknowledging, reader_name
from grapevine.net.retention import Retention
from grapevine.net.stamp import publisher_of, source_of, stamped
from grapevine.net.store import STORE_FILE, Store, StoreError
from grapevine.net.stored_event import StoredEvent
from tests.net.stores import make_old

ALICE, BOB, TOPIC = PeerId.of(b"alice"), PeerId.of(b"bob"), 1
SHORT_S = 0.2  # longer than anything that is here takes


class World:
    """A store and a ledger, and a node's part: events are noted, stored, then put."""

    def __init__(self, store: Store, *, order_s: float = 60.0) -> None:
        self.store, self.ledger, self.order_s, self.ms = store, Ledger(1_000), order_s, 0
        self.ledger.open(TOPIC, (), 0.0)
        self.open: list[Reader] = []

    def reader(self, name: str = "billing", **changes: Any) -> Reader:
        settings: dict[str, Any] = {"size": 4, "acknowledging": "auto", "since_ms": None, "order_s": self.order_s}
        return Reader(
            "t", TOPIC, name, self.store, self.ledger, enter=self._enter, leave=self._leave, **(settings | changes)
        )

    async def _enter(self, reader: Reader) -> int:
        number = await self.store.open_reader(TOPIC, reader.name, reader.since_ms)
        self.open.append(reader)
        return number

    async def _leave(self, reader: Any) -> None:
        self.open.remove(reader)

    async def come(self, *sequences: int, publisher: PeerId = ALICE, time_ms: int = 1_000) -> None:
        """Events arrive in this order."""
        for sequence in sequences:
            event = StoredEvent(publisher, TOPIC, sequence, time_ms, stamped(1, b"%d" % sequence), b"signed")
            if self.ledger.note(TOPIC, source_of(publisher), sequence, 0.0):
                arrival = await self.store.append(event)
                for reader in self.open if arrival else ():
                    reader.put(event)

    def give_up(self, *sequences: int, publisher: PeerId = ALICE) -> None:
        self.ledger.not_found(TOPIC, source_of(publisher), sequences, patience=1)


def during(
    scenario: Callable[[World], Coroutine[Any, Any, None]], retention: Retention | None = None, **world: Any
) -> None:
    async def run(folder: str) -> None:
        async with await Store.open(Path(folder), retention, synced=False) as store:
            await asyncio.wait_for(scenario(World(store, **world)), 20)

    with tempfile.TemporaryDirectory() as folder:
        asyncio.run(run(folder))


def shown(item: Event | Gap) -> Any:
    return item.sequence if isinstance(item, Event) else (item.first, item.last, item.reason)


async def read(reader: Reader, count: int) -> list[Any]:
    return [shown(await reader.get(timeout=10)) for _ in range(count)]


async def is_silent(reader: Reader) -> bool:
    try:
        await reader.get(timeout=SHORT_S)
    except TimeoutError:
        return True
    return False


def test_the_next_reader_of_a_name_goes_on_behind_what_was_acknowledged() -> None:
    async def scenario(world: World) -> None:
        async with world.reader() as first:
            await world.come(1, 2, 3)
            assert await read(first, 2) == [1, 2]
        await world.come(4, 5)
        async with world.reader() as second:
            assert await read(second, 3) == [3, 4, 5]
            assert await is_silent(second)

    during(scenario)


def test_what_was_in_hand_when_the_block_failed_comes_again() -> None:
    async def scenario(world: World) -> None:
        with suppress(ZeroDivisionError):
            async with world.reader() as first:
                await world.come(1, 2, 3)
                assert await read(first, 2) == [1, 2]
                raise ZeroDivisionError
        async with world.reader() as second:
            assert await read(second, 2) == [2, 3]

    during(scenario)


def test_asking_for_the_next_event_acknowledges_the_one_before() -> None:
    async def scenario(world: World) -> None:
        async with world.reader() as reader:
            await world.come(1, 2, 3)
            await read(reader, 3)
            await asyncio.sleep(SHORT_S)  # positions are written beside
            (place,) = await world.store.places(1)
            assert place.next == 3

    during(scenario)


def test_explicit_acknowledgement_alone_moves_an_explicit_reader() -> None:
    async def scenario(world: World) -> None:
        async with world.reader(acknowledging="explicit") as first:
            await world.come(1, 2, 3)
            events = [await first.get(timeout=10) for _ in range(3)]
            await first.ack(events[1])  # and so everything before it
            (place,) = await world.store.places(1)
            assert place.next == 3
        async with world.reader(acknowledging="explicit") as second:
            assert await read(second, 1) == [3]
            with pytest.raises(UsageError, match="was not given to the reader 'billing'"):
                await second.ack(Event("t", ALICE, 4, 0.0, b""))
            with pytest.raises(UsageError, match="was not given"):
                await second.ack(Event("t", BOB, 1, 0.0, b""))

    during(scenario)


def test_readers_of_other_names_have_positions_of_their_own() -> None:
    async def scenario(world: World) -> None:
        async with world.reader("one") as one:
            await world.come(1, 2)
            assert await read(one, 2) == [1, 2]
        async with world.reader("two") as two:  # made now: begins with what comes from now on
            await world.come(3)
            assert await read(two, 1) == [3]
        async with world.reader("one") as one:
            assert await read(one, 1) == [3]
        assert await world.store.readers(TOPIC) == ["one", "two"]

    during(scenario)


def test_a_first_reader_may_begin_with_what_came_since_a_time() -> None:
    async def scenario(world: World) -> None:
        await world.come(1, 2, time_ms=1_000)
        await world.come(3, 4, time_ms=2_000)
        async with world.reader("late", since_ms=1_500) as late:
            assert await read(late, 2) == [3, 4]
        async with world.reader("all", since_ms=0) as everything:
            assert await read(everything, 4) == [1, 2, 3, 4]
        async with world.reader("late", since_ms=0) as again:  # counts for the first time only
            assert await is_silent(again)

    during(scenario)


def test_events_of_a_publisher_come_in_its_order_though_they_arrived_in_another() -> None:
    async def scenario(world: World) -> None:
        async with world.reader() as reader:
            await world.come(1, 3)
            assert await read(reader, 1) == [1]
            assert await is_silent(reader)
            await world.come(1, publisher=BOB)  # others do not wait for Alice's second
            assert await read(reader, 1) == [1]
            await world.come(4, 2)
            assert await read(reader, 3) == [2, 3, 4]

    during(scenario)


def test_what_nobody_has_is_a_gap_in_its_place() -> None:
    async def scenario(world: World) -> None:
        async with world.reader() as reader:
            await world.come(1, 5, 7)
            world.give_up(2, 3, 6)
            assert await read(reader, 2) == [1, (2, 3, "given up")]
            assert await is_silent(reader)  # the fourth may still come
            world.give_up(4)
            assert await read(reader, 4) == [(4, 4, "given up"), 5, (6, 6, "given up"), 7]
        async with world.reader() as again:
            assert await is_silent(again)  # gaps are acknowledged like events

    during(scenario)


def test_a_missing_event_holds_its_publisher_up_for_a_bounded_time() -> None:
    async def scenario(world: World) -> None:
        async with world.reader() as reader:
            await world.come(1, 4)
            assert await read(reader, 3) == [1, (2, 3, "late"), 4]
            await world.come(2)  # was reported: it does not come out of order
            assert await is_silent(reader)

    during(scenario, order_s=SHORT_S)


def test_what_retention_removed_before_it_was_read_is_a_gap() -> None:
    async def scenario(world: World) -> None:
        async with world.reader() as reader:
            await world.come(1)
            assert await read(reader, 1) == [1]
        await world.come(2, 3, time_ms=1_000)
        await world.come(4, time_ms=9_000)
        await world.store.trim(10_000)
        async with world.reader() as reader:
            assert await read(reader, 2) == [(2, 3, "retention"), 4]
        await world.come(5, time_ms=9_000)
        await world.store.trim(100_000)
        async with world.reader() as reader:  # also where nothing came afterwards
            assert await read(reader, 1) == [(5, 5, "retention")]

    during(scenario, Retention(age_s=5.0))


def test_numbers_before_the_first_event_of_a_new_stream_are_passed_over_if_they_are_older_than_wanted() -> None:
    async def scenario(world: World) -> None:
        async with world.reader() as reader:
            await world.come(90)
            assert await is_silent(reader)  # one to eighty-nine may be asked for
            world.ledger.settle(TOPIC, source_of(ALICE), 88, 0.0)
            assert await is_silent(reader)
            await world.come(89)
            assert await read(reader, 2) == [89, 90]

    during(scenario)


def test_what_a_validator_refused_is_neither_waited_for_nor_reported() -> None:
    async def scenario(world: World) -> None:
        async with world.reader() as reader:
            await world.come(1)
            world.ledger.refuse(TOPIC, source_of(ALICE), 2, 0.0)
            await world.come(3)
            assert await read(reader, 2) == [1, 3]

    during(scenario)


def test_a_slow_reader_misses_nothing() -> None:
    async def scenario(world: World) -> None:
        async with world.reader(size=2) as reader:
            await world.come(*range(1, 50))
            assert await read(reader, 49) == list(range(1, 50))

    during(scenario)


def test_a_publisher_with_much_to_catch_up_does_not_hold_up_the_others() -> None:
    async def scenario(world: World) -> None:
        async with world.reader():
            pass
        await world.come(*range(1, 41))
        await world.come(1, 2, publisher=BOB)
        async with world.reader(size=4) as reader:
            first = [(await reader.get(timeout=10)).publisher for _ in range(8)]
            assert BOB in first

    during(scenario)


def test_a_forgotten_reader_begins_anew() -> None:
    async def scenario(world: World) -> None:
        async with world.reader() as reader:
            await world.come(1, 2)
            assert await read(reader, 1) == [1]
        assert await world.store.forget_reader(TOPIC, "billing")
        assert not await world.store.forget_reader(TOPIC, "billing")
        async with world.reader() as reader:
            assert await is_silent(reader)
        assert await world.store.readers(TOPIC) == ["billing"]
        await world.store.unsubscribe(TOPIC)
        assert await world.store.readers(TOPIC) == []

    during(scenario)


def test_positions_that_the_disk_refused_are_written_with_the_next(monkeypatch: pytest.MonkeyPatch) -> None:
    async def scenario(world: World) -> None:
        move, failures = world.store.move_reader, [StoreError("the disk is full")] * 2

        async def refusing(reader: int, positions: Any) -> None:
            if failures:
                raise failures.pop()
            await move(reader, positions)

        monkeypatch.setattr(world.store, "move_reader", refusing)
        async with world.reader(acknowledging="explicit") as reader:
            await world.come(1, 2)
            one, two = [await reader.get(timeout=10) for _ in range(2)]
            for _ in range(2):
                with pytest.raises(StoreError):
                    await reader.ack(two)
            await reader.ack(one)
            (place,) = await world.store.places(1)
            assert place.next == 3

    during(scenario)


def test_a_store_of_the_layout_before_named_readers_is_taken_over(tmp_path: Path) -> None:
    async def make() -> None:
        async with await Store.open(tmp_path, synced=False) as store:
            await World(store).come(1)

    asyncio.run(make())
    file = sqlite3.connect(tmp_path / STORE_FILE)
    make_old(file)
    file.executescript("DROP TABLE readers; DROP TABLE positions; DROP TABLE offers; PRAGMA user_version = 1;")
    file.close()

    async def use() -> None:
        async with await Store.open(tmp_path, synced=False) as store:
            world = World(store)
            world.ledger.note(TOPIC, source_of(ALICE), 1, 0.0)
            async with world.reader(since_ms=0) as reader:
                assert await read(reader, 1) == [1]

    asyncio.run(use())


@pytest.mark.parametrize("name", ["", 7, None, "x" * 257])
def test_a_reader_needs_a_name(name: Any) -> None:
    with pytest.raises(UsageError, match="name"):
        reader_name(name)


def test_there_are_two_ways_of_acknowledging() -> None:
    assert acknowledging("explicit") == "explicit"
    with pytest.raises(UsageError, match="ack='manual'"):
        acknowledging("manual")


# What happens to events, and to the reader: each step is a number of what may happen.
_STEP = st.one_of(
    st.tuples(st.just("come"), st.integers(1, 12), st.sampled_from([ALICE, BOB])),
    st.tuples(st.just("give up"), st.integers(1, 12), st.sampled_from([ALICE, BOB])),
    st.tuples(st.just("read"), st.integers(1, 4)),
    st.tuples(st.just("leave")),
    st.tuples(st.just("fail")),
    st.tuples(st.just("trim")),
)


@given(st.lists(_STEP, max_size=40), st.integers(1, 5))
def test_whatever_happens_every_number_is_handed_over_or_reported_in_order(steps: list[Any], size: int) -> None:
    """Invariants 1 and 2 over any schedule: each number once in a session, and on from what was acknowledged."""
    schedule: list[tuple[Any, ...]] = [*steps, ("leave",), ("read", 40), ("leave",), ("read", 1)]
    owed = {ALICE: 1, BOB: 1}  # the first number that is not acknowledged

    async def take(reader: Reader, count: int, clock: dict[PeerId, int]) -> Event | Gap | None:
        """Read, and check that nothing is left out; what is in hand afterwards."""
        item = None
        for _ in range(count):
            with suppress(TimeoutError):
                item = await reader.get(timeout=0.05)
                first, last = (item.sequence,) * 2 if isinstance(item, Event) else (item.first, item.last)
                assert first == clock[item.publisher]
                clock[item.publisher] = last + 1
                continue
            return None  # asking acknowledged what was in hand
        return item

    async def session(world: World) -> None:
        """Until the reader leaves, or fails with an event in hand."""
        async with world.reader(size=size, since_ms=0) as reader:
            given, in_hand = dict(owed), None
            while schedule:
                what, *values = schedule.pop(0)
                world.ms += 1_000
                if what == "come":
                    await world.come(values[0], publisher=values[1], time_ms=world.ms)
                elif what == "give up":
                    world.give_up(values[0], publisher=values[1])
                elif what == "trim":
                    await world.store.trim(world.ms)
                elif what == "read":
                    in_hand = await take(reader, values[0], given)
                elif what == "fail" and in_hand is not None:
                    owed.update(given)
                    owed[in_hand.publisher] = in_hand.sequence if isinstance(in_hand, Event) else in_hand.first
                    raise ZeroDivisionError
                else:
                    break
            owed.update(given)

    async def scenario(world: World) -> None:
        while schedule:
            with suppress(ZeroDivisionError):
                await session(world)
        places = {publisher_of(place.source): place.next or 1 for place in await world.store.places(1)}
        assert places == {publisher: owed[publisher] for publisher in places}

    during(scenario, Retention(age_s=8.0))
