"""A node as an application sees it: it publishes and subscribes, and is told plainly what does not work."""

from __future__ import annotations

import asyncio
import dataclasses
import socket
from contextlib import AsyncExitStack
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import pytest

from grapevine.model.errors import UsageError
from grapevine.net import Event, Node, NoPath
from grapevine.systems.gossip.weights import ONE
from grapevine.systems.vitis.peer.peer import VitisPeer
from tests.net.hostile import eventually
from tests.net.nodes import during, endpoint, next_event, opening, payloads, silence


def test_the_example_works_as_it_is_written() -> None:
    async def scenario() -> None:
        async with Node.open() as first, Node.open(listen="127.0.0.1:0", bootstrap=[endpoint(first)]) as node:  # noqa: SIM117
            async with node.subscribe("weather/oslo") as events:
                await node.publish("weather/oslo", b"-3 C")
                async for event in events:
                    assert isinstance(event, Event)
                    assert (event.topic, event.publisher, event.payload) == ("weather/oslo", node.id, b"-3 C")
                    break

    during(scenario())


def test_events_reach_all_subscribers_once_and_nobody_else() -> None:
    async def scenario() -> None:
        async with AsyncExitStack() as stack:
            a = await stack.enter_async_context(opening())
            b, c, d = [await stack.enter_async_context(opening(a)) for _ in range(3)]
            at_b, at_c = [await stack.enter_async_context(node.subscribe("x")) for node in (b, c)]
            at_d = await stack.enter_async_context(d.subscribe("y"))
            sent = [b"%d" % number for number in range(50)]
            published = [await a.publish("x", payload) for payload in sent]
            assert [event.sequence for event in published] == list(range(1, 51))
            assert sorted(await payloads(at_b, 50)) == sorted(await payloads(at_c, 50)) == sorted(sent)
            assert await silence(at_b, 0.3) and await silence(at_c, 0.1) and await silence(at_d, 0.1)
            assert (a.stats()["published"], b.stats()["delivered"], d.stats()["delivered"]) == (50, 50, 0)

    during(scenario())


def test_an_event_that_is_published_right_after_opening_is_not_lost() -> None:
    async def scenario() -> None:
        async with opening() as a, opening(a) as b, b.subscribe("x") as events, opening(a) as c:
            await c.publish("x", b"early")
            assert await payloads(events, 1) == [b"early"]

    during(scenario())


def test_a_network_of_one_publishes_to_itself() -> None:
    async def scenario() -> None:
        async with opening() as alone, alone.subscribe("x") as events:
            await alone.publish("x", b"echo")
            assert await payloads(events, 1) == [b"echo"]

    during(scenario())


def test_without_a_path_the_publisher_is_told_and_the_event_spreads_later() -> None:
    with socket.socket() as taken:  # bound, and not listening: nobody is there
        taken.bind(("127.0.0.1", 0))
        nobody = "{}:{}".format(*taken.getsockname())

        async def scenario() -> None:
            async with opening(bootstrap=[nobody]) as lonely:
                with pytest.raises(NoPath, match=r"^nobody could take event 1 within 0.2 s; it is kept.*reachable$"):
                    await lonely.publish("x", b"kept", timeout=0.2)
                async with opening(lonely) as other, other.subscribe("x", since=0) as events:
                    assert await payloads(events, 1) == [b"kept"]

        during(scenario())


def test_an_event_that_was_held_goes_when_a_neighbour_comes() -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        nobody = "{}:{}".format(*taken.getsockname())

        async def scenario() -> None:
            async with opening(bootstrap=[nobody]) as lonely:
                publishing = asyncio.create_task(lonely.publish("x", b"held", timeout=20))
                await eventually(lambda: lonely.stats()["unsent"] == 1)
                async with opening(lonely) as other, other.subscribe("x") as events:
                    assert (await asyncio.wait_for(publishing, 20)).payload == b"held"
                    assert await payloads(events, 1) == [b"held"]
                    await lonely.drain()

        during(scenario())


def test_a_node_that_closes_tells_who_waits_for_a_path() -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        nobody = "{}:{}".format(*taken.getsockname())

        async def scenario() -> None:
            async with opening(bootstrap=[nobody]) as lonely:
                publishing = asyncio.create_task(lonely.publish("x", b"held", timeout=20))
                await eventually(lambda: lonely.stats()["unsent"] == 1)
            with pytest.raises(NoPath, match="closed"):
                await publishing
            with pytest.raises(UsageError, match="closed"):
                await lonely.publish("x", b"too late")
            with pytest.raises(UsageError, match="closed"):
                async with lonely.subscribe("x"):
                    pass

        during(scenario())


def test_ready_waits_for_partners_and_gives_up_in_time() -> None:
    async def scenario() -> None:
        async with opening() as a:
            with pytest.raises(TimeoutError):
                await a.ready("x", timeout=0.2)
            async with a.subscribe("x"), opening(a) as b, b.subscribe("x"):
                await asyncio.gather(a.ready("x"), b.ready("x"))
                with pytest.raises(TimeoutError):
                    await a.ready("x", peers=2, timeout=0.2)

    during(scenario())


def test_many_at_once_in_a_new_topic_get_numbers_without_gaps() -> None:
    async def scenario() -> None:
        async with opening() as a, a.subscribe("x") as events:
            for topic in ("x", *(f"new {number}" for number in range(5))):
                published = await asyncio.gather(*(a.publish(topic, b"%d" % number) for number in range(20)))
                assert sorted(event.sequence for event in published) == list(range(1, 21))
            assert [(await next_event(events, 5)).sequence for _ in range(20)] == list(range(1, 21))
            await a.drain()

    during(scenario())


@pytest.mark.parametrize("payload", [b"x" * 101, "text", None, bytearray(b"x")])
def test_payloads_are_bytes_and_not_too_many(payload: Any) -> None:
    async def scenario() -> None:
        async with opening(payload_bytes=100) as a:
            with pytest.raises(UsageError, match=r"give bytes(, e.g. text.encode\(\))?, 100 of them at most"):
                await a.publish("x", payload)
            assert (await a.publish("x", b"x" * 100)).sequence == (await a.publish("y", b"")).sequence == 1

    during(scenario())


def test_the_longest_payload_arrives() -> None:
    async def scenario() -> None:
        async with opening() as a, opening(a) as b, b.subscribe("x") as events:
            await a.publish("x", b"x" * 262_144)
            assert await payloads(events, 1) == [b"x" * 262_144]

    during(scenario())


def test_events_cannot_be_changed() -> None:
    async def scenario() -> None:
        async with opening() as a:
            event = await a.publish("x", b"news")
            assert isinstance(event, Event) and hash(event) == hash(dataclasses.replace(event))
            with pytest.raises(dataclasses.FrozenInstanceError):
                event.payload = b"fake"  # type: ignore[misc]

    during(scenario())


def test_two_nodes_cannot_share_a_folder_and_one_after_the_other_is_the_same_peer(tmp_path: Path) -> None:
    async def scenario() -> None:
        async with opening(data_dir=tmp_path) as a:
            with pytest.raises(UsageError, match="another node uses this folder"):
                async with opening(data_dir=tmp_path):
                    pass
        async with opening(data_dir=tmp_path) as again:
            assert again.id == a.id
            assert (await again.publish("x", b"")).sequence == 1
        async with opening(data_dir=tmp_path) as again:
            assert (await again.publish("x", b"")).sequence == 2

    during(scenario())


@pytest.mark.parametrize(
    ("mistake", "said"),
    [
        ({"listen": "nowhere"}, "HOST:PORT"),
        ({"bootstrap": ["127.0.0.1:0"]}, "port"),
        ({"system": "gossip"}, "live system 'gossip': choose one of rappel, spidercast, trellis, vitis"),
        ({"parameters": {"foo": 1}}, "vitis has no parameter foo; it has sample_size, max_age, table_size, "),
        ({"parameters": {"tabel_size": 9}}, r"did you mean table_size\?"),
        ({"parameters": {"table_size": "x"}}, "table_size='x': needs a whole number"),
        ({"parameters": {"table_size": True}}, "table_size=True: needs a whole number"),
        ({"parameters": {"round_s": float("nan")}}, "round_s=nan: needs a finite number"),
        ({"pears": 3}, r"a node has no parameter pears; it has frame_bytes, most_connections, .*"),
        ({"idle_s": "soon"}, "idle_s='soon': needs a number"),
        ({"most_connections": 0}, "most_connections"),
        ({"announce": "example.org"}, "IP address"),
        ({"listen": "0.0.0.0:0"}, "announce"),
    ],
)
def test_a_mistake_in_opening_is_said_in_one_line(mistake: dict[str, Any], said: str) -> None:
    async def scenario() -> None:
        with pytest.raises(UsageError, match=said) as error:
            async with opening(**mistake):
                pass
        assert "\n" not in str(error.value)

    during(scenario())


def test_a_node_says_who_it_is_and_what_it_has_seen() -> None:
    async def scenario() -> None:
        async with opening() as a, opening(a) as b, b.subscribe("x") as events, b.subscribe("<i>"):
            await a.publish("x", b"")
            await payloads(events, 1)
            await eventually(lambda: len(a.neighbours()) == len(b.neighbours()) == 1)
            assert b.neighbours() == [(a.id, endpoint(a))]
            who = f"Node(vitis {b.id.short} on {endpoint(b)}: "
            assert repr(b) == who + "1 neighbour, 2 subscriptions, 1 event delivered, 0 published)"
            rows = [[cell.text or "" for cell in row] for row in ElementTree.fromstring(b._repr_html_()).iter("tr")]
            facts = {name: values[0] for name, *values in rows if values}
            assert facts["peer"] == str(b.id) and facts["listens on"] == endpoint(b)
            assert facts[a.id.short] == endpoint(a), "its neighbour"
            assert "x" in facts and "<i>" in facts, "its subscriptions"
            assert (facts["published"], facts["delivered"], facts["peers connected"]) == ("0", "1", "1")
            assert facts["received"].endswith(" MiB")
        assert repr(b).startswith(who), "also when it is closed"
        assert "the node is leaving" in b._repr_html_()

    during(scenario())


def test_a_taken_port_is_said() -> None:
    async def scenario() -> None:
        async with opening() as a:
            with pytest.raises(UsageError, match="cannot be listened on"):
                async with opening(listen=endpoint(a)):
                    pass

    during(scenario())


def test_a_reader_that_leaves_ends_the_subscription_unless_it_is_for_good() -> None:
    async def scenario() -> None:
        async with opening() as a:
            async with a.subscribe("x"), a.subscribe("y"):
                await a.subscribe_for_good("y")
                await a.subscribe_for_good("z")
                assert a.subscriptions == ["x", "y", "z"]
            async with a.subscribe("z"):
                pass
            assert a.subscriptions == ["y", "z"]
            await a.publish("z", b"kept")
            async with a.subscribe("z", since=0) as events:
                assert await payloads(events, 1) == [b"kept"]
            await a.unsubscribe("z")
            assert a.subscriptions == ["y"]

    during(scenario())


def test_a_reader_that_is_cancelled_again_while_it_leaves_has_left() -> None:
    async def scenario() -> None:
        async with opening() as node:

            async def read() -> None:
                async with node.subscribe("x") as events:
                    await anext(events)

            reader = asyncio.create_task(read())
            await eventually(lambda: node.subscriptions == ["x"])
            for _ in range(5):  # as a web framework does with whoever waits for a client that has hung up
                reader.cancel()
                await asyncio.sleep(0)
            with pytest.raises(asyncio.CancelledError):
                await reader
            await eventually(lambda: node.subscriptions == [])

    during(scenario())


def test_who_unsubscribes_and_goes_on_publishing_is_still_heard() -> None:
    async def scenario() -> None:
        async with opening() as a, opening(a) as b, b.subscribe("x") as events:
            async with a.subscribe("x"):
                await a.publish("x", b"1")
            await a.publish("x", b"2")
            assert sorted(await payloads(events, 2)) == [b"1", b"2"]

    during(scenario())


def test_a_vitis_node_is_told_how_often_a_topic_publishes() -> None:
    """Before it subscribes, or after."""

    async def scenario() -> None:
        async with opening(parameters={"rates": "declared"}) as node:
            node.declare_rate("x", 24.0)
            async with node.subscribe("x"), node.subscribe("y"), node.subscribe("z"):
                node.declare_rate("y", 0.5)
                peer, topic = node.parts.host.peer, node.parts.system.topic
                assert isinstance(peer, VitisPeer)
                assert [peer.interests.weight(topic(name)) / ONE for name in "xyz"] == [24.0, 0.5, 1.0]
            for wrong in (-1.0, float("nan"), float("inf")):
                with pytest.raises(UsageError, match=r"rate=.*: needs a number, zero or more"):
                    node.declare_rate("x", wrong)

    during(scenario())


def test_rappel_delivers_a_feed_to_its_subscribers() -> None:
    quick = {"system": "rappel", "parameters": {"stagger_s": 0.2, "timeout_s": 2.0}}

    async def scenario() -> None:
        async with opening(**quick) as a, opening(a, **quick) as b, opening(a, **quick) as c:
            feed = f"{a.id}/news"
            await a.publish(feed, b"1")  # it is founded
            async with b.subscribe(feed) as at_b, c.subscribe(feed) as at_c:
                await asyncio.gather(b.ready(feed, timeout=20), c.ready(feed, timeout=20))
                for number in (b"2", b"3", b"4"):
                    await a.publish(feed, number)
                for events in (at_b, at_c):
                    async with asyncio.timeout(20):
                        got: set[bytes] = set()
                        while not got >= {b"2", b"3", b"4"}:
                            got.add((await next_event(events)).payload)
            with pytest.raises(UsageError, match="not published by this node"):
                await b.publish(feed, b"mine")
            with pytest.raises(UsageError, match="PEER_ID/NAME"):
                b.subscribe("news")

    during(scenario())


def test_the_publisher_of_a_feed_may_subscribe_to_it_first() -> None:
    quick = {"system": "rappel", "parameters": {"stagger_s": 0.2, "timeout_s": 2.0}}

    async def scenario() -> None:
        async with opening(**quick) as a, a.subscribe(f"{a.id}/news") as own, opening(a, **quick) as b:
            await a.publish(f"{a.id}/news", b"1")
            async with b.subscribe(f"{a.id}/news", since=0) as events:
                assert await payloads(own, 1) == await payloads(events, 1) == [b"1"]

    during(scenario())


def test_a_bug_in_a_peer_is_counted_and_the_node_goes_on(monkeypatch: pytest.MonkeyPatch) -> None:
    async def scenario() -> None:
        async with opening() as a, opening(a) as b, a.subscribe("x"), b.subscribe("x") as events:
            await b.ready("x")
            with monkeypatch.context() as patch:

                def wrong(*arguments: Any) -> Any:
                    raise ZeroDivisionError

                patch.setattr(VitisPeer, "on_message", wrong)
                await eventually(lambda: all(node.stats()["failures"].get("ZeroDivisionError") for node in (a, b)))
            await a.publish("x", b"still there")
            assert await payloads(events, 1) == [b"still there"]

    during(scenario())


@pytest.mark.parametrize("method", ["partners", "carried", "has_path", "roles"])
def test_a_bug_in_what_a_peer_tells_does_not_stop_what_a_node_does_by_itself(
    method: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    async def scenario() -> None:
        async with opening(diary=tmp_path) as a, opening(a) as b, b.subscribe("x") as events:
            await eventually(lambda: a.connections.open_connections and b.connections.open_connections)
            called: list[Any] = []
            with monkeypatch.context() as patch:

                def wrong(*arguments: Any) -> Any:
                    called.append(arguments)
                    raise ZeroDivisionError

                patch.setattr(VitisPeer, method, wrong)
                if method == "has_path":
                    with pytest.raises(ZeroDivisionError):
                        await a.publish("y", b"who asks for a path")
                await eventually(lambda: called)
            await a.publish("x", b"still there")
            assert await payloads(events, 1) == [b"still there"]
            assert not any(task.done() for task in a.parts.tasks + b.parts.tasks)

    during(scenario())


def test_stats_are_plain_numbers() -> None:
    async def scenario() -> None:
        async with opening() as a:
            await a.publish("x", b"")
            stats = a.stats()
            assert stats["published"] == 1 and stats["peers"] == 0
            assert all(isinstance(value, (int, dict)) for value in stats.values())

    during(scenario())
