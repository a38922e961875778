"""The store against a model: it does what a dictionary would."""

from __future__ import annotations

import asyncio
import tempfile
from collections import Counter, defaultdict
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from grapevine.model.identity import PeerId
from grapevine.net.retention import Retention
from grapevine.net.stamp import source_of
from grapevine.net.store import Store
from grapevine.net.stored_event import EVENT_OVERHEAD, StoredEvent
from tests.net.stores import ALICE, BOB, HUGE, making


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


def unstamped(payload: bytes) -> bytes:
    """Of the epoch 0, and naming no event before: the store does not look into payloads otherwise."""
    return bytes([payload[0] & 0x7F]) + payload[1:] if payload else payload


PAYLOADS = st.binary(max_size=300).map(unstamped)
PUBLISHERS, TOPICS = st.sampled_from([ALICE, BOB]), st.sampled_from([1, HUGE])
EVENTS = st.builds(
    StoredEvent,
    PUBLISHERS,
    TOPICS,
    st.integers(1, 12),
    st.integers(0, 20_000),
    PAYLOADS,
    st.binary(max_size=4),
)
OPERATIONS = st.one_of(
    st.tuples(st.just("append"), EVENTS),
    st.tuples(st.just("append_all"), st.lists(EVENTS, max_size=12)),
    st.tuples(
        st.just("publish"),
        st.tuples(PUBLISHERS, TOPICS, st.integers(0, 20_000), PAYLOADS),
    ),
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
                    source = source_of(publisher)
                    published = await store.publish(source, topic, time_ms, making(payload, b"made"))
                    assert published.sequence == model.last[publisher, topic] + 1
                    assert model.append(published)
                case "trim":
                    assert await store.trim(given_) == model.trim(given_)
                case "reopen":
                    await store.close()
                    store = await Store.open(folder, retention)
        for publisher in (ALICE, BOB):
            for topic in (1, HUGE):
                stream, kept_as = (publisher, topic), (source_of(publisher), topic)
                expected = [one for _, one in sorted(model.kept[stream].items())]
                assert await store.since(*kept_as, 0, 1_000) == expected
                assert await store.since(*kept_as, 5, 3) == [one for one in expected if one.sequence > 5][:3]
                assert await store.find(*kept_as, range(1, 40)) == expected
                assert await store.next_sequence(*kept_as) == model.last[stream] + 1
                for window in (1, 6, 100):
                    assert await store.missing(*kept_as, window) == model.missing(stream, window)
        assert await store.bytes_by_topic() == {topic: size for topic in (1, HUGE) if (size := model.bytes(topic))}
        lasts = {(source_of(publisher), topic): last for (publisher, topic), last in (+model.last).items()}
        assert {key: last for key, last in (await store.last_sequences()).items() if last} == lasts
        await store.close()

    with tempfile.TemporaryDirectory() as folder:
        asyncio.run(run(Path(folder)))
