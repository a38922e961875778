"""What every live system owes, on whole nodes in one process: the same for all that are registered."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import msgspec
import pytest

from grapevine.net import Node
from grapevine.net.live_system import live_facet, messages_of
from grapevine.net.memory_transport import MemoryNetwork
from grapevine.systems.registry import systems_with
from tests.net.hostile import eventually
from tests.net.nodes import during, opening, payloads

EVERY = pytest.mark.parametrize("system", systems_with("live"))
# Parameters by which nothing takes long.
QUICK: dict[str, dict[str, Any]] = {
    "rappel": {"stagger_s": 0.2, "timeout_s": 2.0},
    "spidercast": {"round_s": 0.2},
    "vitis": {"round_s": 0.2, "settle_rounds": 0},
}


def settings(system: str) -> dict[str, Any]:
    return {"system": system, "parameters": QUICK.get(system, {}), "transport": MemoryNetwork().transport}


def topic_of(system: str, publisher: Node) -> str:
    """What a topic in which this node may publish is called."""
    return f"{publisher.id}/news" if system == "rappel" else "news"


@EVERY
def test_its_messages_and_those_of_the_host_are_told_apart(system: str) -> None:
    msgspec.msgpack.Decoder(messages_of(live_facet(system)))


@EVERY
def test_subscribers_get_every_event_and_nobody_fails(system: str) -> None:
    how = settings(system)

    async def scenario() -> None:
        async with opening(**how) as a, opening(a, **how) as b, opening(a, **how) as c:
            topic = topic_of(system, a)
            async with b.subscribe(topic, since=0) as at_b, c.subscribe(topic, since=0) as at_c:
                for number in range(5):
                    await a.publish(topic, b"%d" % number)
                for inbox in (at_b, at_c):
                    assert sorted(await payloads(inbox, 5)) == [b"0", b"1", b"2", b"3", b"4"]
            assert not any(node.stats()["failures"] for node in (a, b, c))

    during(scenario())


@EVERY
def test_a_node_restarts_from_its_folder_and_gets_what_it_missed(system: str, tmp_path: Path) -> None:
    how = settings(system)

    async def scenario() -> None:
        async with opening(**how) as a, opening(a, **how) as c:
            topic = topic_of(system, a)
            async with c.subscribe(topic, since=0):
                async with opening(a, data_dir=tmp_path, **how) as b:
                    me = b.id
                    await b.subscribe_for_good(topic)
                    await a.publish(topic, b"before")
                    await eventually(lambda: b.delivered == 1)
                await a.publish(topic, b"meanwhile")
                async with opening(a, data_dir=tmp_path, **how) as b, b.subscribe(topic, since=0) as events:
                    assert b.id == me
                    assert sorted(await payloads(events, 2)) == [b"before", b"meanwhile"]

    during(scenario())
