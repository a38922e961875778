"""The loop in virtual time: hours pass at once, nothing is waited for in vain, and the dead do nothing more."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Iterator

import pytest

from grapevine.net.torture.loop import Idle, Process, VirtualLoop


@pytest.fixture
def loop() -> Iterator[VirtualLoop]:
    made = VirtualLoop()
    yield made
    made.close()


def test_a_day_passes_at_once(loop: VirtualLoop) -> None:
    begun = time.monotonic()
    loop.run_until_complete(asyncio.sleep(86_400))
    assert loop.time() == 86_400 and time.monotonic() - begun < 5


def test_timers_fire_in_the_order_of_their_times(loop: VirtualLoop) -> None:
    fired: list[tuple[float, int]] = []

    async def scenario() -> None:
        for after in (3, 1, 2):
            loop.call_later(after, lambda after=after: fired.append((loop.time(), after)))
        await asyncio.sleep(10)

    loop.run_until_complete(scenario())
    assert fired == [(1.0, 1), (2.0, 2), (3.0, 3)]


def test_a_wait_that_cannot_end_is_an_error(loop: VirtualLoop) -> None:
    async def scenario() -> None:
        await asyncio.Event().wait()

    with pytest.raises(Idle, match="nothing is ready"):
        loop.run_until_complete(scenario())


def test_threads_are_refused(loop: VirtualLoop) -> None:
    with pytest.raises(Idle, match="thread"):
        loop.run_until_complete(asyncio.to_thread(time.time))


def test_a_process_that_was_killed_does_nothing_more(loop: VirtualLoop) -> None:
    done: list[str] = []

    async def child(name: str) -> None:
        try:
            while True:
                await asyncio.sleep(1)
                done.append(name)
        finally:
            await asyncio.sleep(1)
            done.append(f"{name} closed")

    async def parent() -> None:
        loop.call_later(2.5, done.append, "timer")
        await asyncio.gather(child("a"), asyncio.create_task(child("b")))

    async def scenario() -> None:
        process = Process("doomed")
        loop.create_task(parent(), context=process.context())
        await asyncio.sleep(2.25)
        loop.kill(process)
        await asyncio.sleep(10)
        assert process.is_dead and not process.tasks

    loop.run_until_complete(scenario())
    assert sorted(done) == ["a", "a", "b", "b"] and not loop.errors


def test_what_nobody_dealt_with_is_noted(loop: VirtualLoop) -> None:
    async def scenario() -> None:
        loop.call_soon(lambda: 1 // 0)
        await asyncio.sleep(1)

    loop.run_until_complete(scenario())
    assert len(loop.errors) == 1 and "ZeroDivisionError" in loop.errors[0]
