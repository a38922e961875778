"""A process that publishes into a store, says what was acknowledged, and is killed. `test_store` runs it.

For every folder on its standard input it forks a child that publishes until somebody ends it. Importing takes a second,
forking a millisecond.
"""

from __future__ import annotations

import asyncio
import os
import sys
from pathlib import Path

from grapevine.model.identity import PeerId
from grapevine.net.stamp import source_of
from grapevine.net.store import Store

PUBLISHER = source_of(PeerId.of(b"appender"))
TOPICS = range(4)


def payload_of(topic: int, sequence: int) -> bytes:
    """What the event holds, of different sizes."""
    return b"%d/%d " % (topic, sequence) * (sequence % 50)


def say(line: str) -> None:
    """One write, so that lines of parent and child do not mix."""
    os.write(1, f"{line}\n".encode())


async def publish_for_ever(store: Store, topic: int) -> None:
    sequence = await store.next_sequence(PUBLISHER, topic)
    while True:
        content = payload_of(topic, sequence)
        event = await store.publish(PUBLISHER, topic, sequence, lambda n, _, kept=content: (kept, b"%d" % n))
        assert event.sequence == sequence
        say(f"{topic} {sequence}")
        sequence += 1


async def run(folder: Path) -> None:
    async with await Store.open(folder) as store:
        await asyncio.gather(*(publish_for_ever(store, topic) for topic in TOPICS))


if __name__ == "__main__":
    for folder in sys.stdin:
        if (child := os.fork()) == 0:
            asyncio.run(run(Path(folder.strip())))
        say(f"pid {child}")
        os.waitpid(child, 0)
        say("dead")
