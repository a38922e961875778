"""Sessions that outlive the node: a graceful stop, and the end of the process without a word."""

from __future__ import annotations

import asyncio
import shutil
from pathlib import Path
from typing import Any

import mqtt5
import pytest

from grapevine.model.errors import UsageError
from grapevine.net.retention import Retention
from tests.net.doors.mqtt.doors import Client, door_of, one_door
from tests.net.nodes import during, opening

LASTING: dict[str, Any] = {"clean_start": False, "session_expiry_interval": 3_600}


def copied(folder: Path, to: Path) -> Path:
    """What a process leaves that is killed now: its files as they are. The lock and the node go on with the others."""
    shutil.copytree(folder, to)
    return to


@pytest.mark.parametrize("qos", [1, 2])
def test_a_session_goes_on_at_a_node_that_was_restarted(tmp_path: Path, qos: int) -> None:
    async def scenario() -> None:
        async with opening() as other, door_of(other) as elsewhere:
            async with opening(other, data_dir=tmp_path / "a") as node, door_of(node, tmp_path / "a") as door:
                reader = await Client.of(door, "reader", **LASTING)
                await reader.subscribe("a/b", "wild/#", qos=qos)
                writer = await Client.of(elsewhere, "writer")
                await writer.publish("a/b", b"1", 1)
                assert (await reader.message()).payload == b"1"
                await reader.ping()
            await writer.publish("a/b", b"2", 1)
            await writer.publish("wild/new", b"3", 1)
            async with opening(other, data_dir=tmp_path / "a") as node, door_of(node, tmp_path / "a") as door:
                reader = await Client.of(door, "reader", **LASTING)
                assert reader.answer.session_present
                assert sorted([(await reader.message()).payload for _ in range(2)]) == [b"2", b"3"]
                assert await reader.is_quiet()

    during(scenario())


def test_what_a_killed_node_had_sent_at_qos_2_does_not_come_twice(tmp_path: Path) -> None:
    """The client has said PUBREC, and the node has died: only PUBREL comes again (MQTT-4.3.3-6, MQTT-4.4.0-1)."""

    async def scenario() -> None:
        async with one_door(tmp_path / "a") as door:
            reader, writer = await Client.of(door, "reader", **LASTING), await Client.of(door, "writer", **LASTING)
            await reader.subscribe("a", qos=2)
            for number in (1, 2):
                await writer.publish("a", b"%d" % number, 1)
            first, second = [await reader.get(mqtt5.PublishPacket) for _ in range(2)]
            assert first.packet_id and second.packet_id
            reader.send(mqtt5.PubRecPacket(second.packet_id))
            await reader.get(mqtt5.PubRelPacket)
            writer.send(mqtt5.PublishPacket("b", b"x", qos=mqtt5.QoS(2), packet_id=5))
            await writer.get(mqtt5.PubRecPacket)
            left = copied(tmp_path / "a", tmp_path / "b")
        async with one_door(left) as door:
            reader, writer = await Client.of(door, "reader", **LASTING), await Client.of(door, "writer", **LASTING)
            assert (await reader.get(mqtt5.PubRelPacket)).packet_id == second.packet_id
            again = await reader.get(mqtt5.PublishPacket)
            assert (again.payload, again.packet_id, again.duplicate) == (b"1", first.packet_id, True)
            reader.send(mqtt5.PubCompPacket(second.packet_id))
            await reader.acknowledge(again)
            assert await reader.is_quiet()
            assert sorted(door.sessions["writer"].received) == [5]
            writer.send(mqtt5.PublishPacket("b", b"x", qos=mqtt5.QoS(2), packet_id=5, duplicate=True))
            await writer.get(mqtt5.PubRecPacket)
            streams, topic = await door.node.parts.store.last_sequences(), door.node.parts.system.topic("b")
            assert [last for (_, of), last in streams.items() if of == topic] == [1], "published again"

    during(scenario())


@pytest.mark.parametrize("qos", [1, 2])
def test_numbers_that_a_killed_node_uses_again_are_those_of_other_messages(tmp_path: Path, qos: int) -> None:
    """After a kill a node publishes in a new epoch, from 1 on: the client has not had those."""

    async def scenario() -> None:
        async with one_door(tmp_path / "a") as door:
            reader, writer = await Client.of(door, "reader", **LASTING), await Client.of(door, "writer")
            await reader.subscribe("a", qos=qos)
            await writer.publish("a", b"old", 1, retain=True)
            first = await reader.get(mqtt5.PublishPacket)
            left = copied(tmp_path / "a", tmp_path / "b")
        async with one_door(left) as door:
            writer = await Client.of(door, "writer")
            await writer.publish("a", b"new", 1, retain=True)
            reader = await Client.of(door, "reader", **LASTING)
            found = [await reader.get(mqtt5.PublishPacket) for _ in range(2)]
            assert [one.payload for one in found] == [b"old", b"new"]
            assert qos == 1 or found[0].packet_id == first.packet_id
            assert found[0].packet_id != found[1].packet_id
            for one in found:
                await reader.acknowledge(one)
            assert await reader.is_quiet()
            late = await Client.of(door, "late")
            await late.subscribe("a")
            assert (await late.message()).payload == b"new"
        async with one_door(left) as door:
            assert await (await Client.of(door, "reader", **LASTING)).is_quiet(), "all of it was acknowledged"

    during(scenario())


@pytest.mark.parametrize("qos", [1, 2])
def test_a_session_goes_on_behind_what_retention_took(
    tmp_path: Path, qos: int, caplog: pytest.LogCaptureFixture
) -> None:
    """MQTT has no words for a gap: the client gets what is left, and the log says how many are lost."""

    async def scenario() -> None:
        retention = Retention(topic_bytes=600)
        async with opening(data_dir=tmp_path, retention=retention) as node, door_of(node, tmp_path) as door:
            reader = await Client.of(door, "reader", **LASTING)
            await reader.subscribe("a", qos=qos)
            await reader.leave()
            for number in range(10):
                await node.publish("a", bytes([number]) * 200)
            await node.parts.trim()
            writer = await Client.of(door, "writer")
            reader = await Client.of(door, "reader", receive_max=1, **LASTING)
            found = [(await reader.message()).payload[0]]
            while found[-1] < 9:
                found.append((await reader.message()).payload[0])
            assert found == [*range(found[0], 10)] and found[0] > 0
            door.reading.tell_of_losses()
            assert f"opened {found[0]} events could not be had" in caplog.text
            await writer.publish("a", b"on", 1)
            assert (await reader.message()).payload == b"on"
            await reader.leave()
        async with opening(data_dir=tmp_path, retention=retention) as node, door_of(node, tmp_path) as door:
            assert await (await Client.of(door, "reader", **LASTING)).is_quiet(), "all of it was acknowledged"

    during(scenario())


def test_sessions_that_expired_while_the_node_was_away_are_forgotten(tmp_path: Path) -> None:
    async def scenario() -> None:
        async with one_door(tmp_path) as door:
            reader = await Client.of(door, "reader", clean_start=False, session_expiry_interval=1)
            await reader.subscribe("a", qos=1)
            await reader.leave()
            assert door.node.wants("a")
        await asyncio.sleep(1.2)
        async with one_door(tmp_path) as door:
            assert door.sessions == {} and not door.node.wants("a")
            assert not (await Client.of(door, "reader", clean_start=False)).answer.session_present

    during(scenario())


def test_a_topic_that_the_application_wants_stays_wanted(tmp_path: Path) -> None:
    async def scenario() -> None:
        async with one_door(tmp_path) as door:
            await door.node.subscribe_for_good("a")
            reader = await Client.of(door, "reader", **LASTING)
            await reader.subscribe("a", "b", qos=1)
            await reader.leave()
        async with one_door(tmp_path) as door:
            await Client.of(door, "reader", clean_start=True)
            assert door.node.wants("a") and not door.node.wants("b")

    during(scenario())


def test_a_file_of_sessions_that_is_none_is_said(tmp_path: Path) -> None:
    async def scenario() -> None:
        (tmp_path / "mqtt.sqlite").write_bytes(b"this is no database at all" * 100)
        with pytest.raises(UsageError, match="move it away"):
            async with one_door(tmp_path):
                pass

    during(scenario())
