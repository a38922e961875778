"""Clients that others wrote, at the doors of three nodes: mosquitto's programs, paho and aiomqtt, in both versions."""

from __future__ import annotations

import asyncio
import shutil
from typing import Any

import aiomqtt
import paho.mqtt.client as paho
import pytest
from paho.mqtt.properties import Properties

from grapevine.net.doors.mqtt.door import Door
from tests.net.doors.mqtt.doors import PATIENCE_S, three_doors
from tests.net.hostile import eventually
from tests.net.nodes import during

needs_mosquitto = pytest.mark.skipif(
    shutil.which("mosquitto_pub") is None, reason="mosquitto_pub is not installed (Debian: mosquitto-clients)"
)
VERSIONS = {"311": aiomqtt.ProtocolVersion.V311, "5": aiomqtt.ProtocolVersion.V5}


async def mosquitto(program: str, door: Door, *arguments: str) -> asyncio.subprocess.Process:
    host, port = door.endpoint
    return await asyncio.create_subprocess_exec(
        *(f"mosquitto_{program}", "-h", host, "-p", str(port), *arguments),
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.STDOUT,
    )


async def said(process: asyncio.subprocess.Process) -> list[str]:
    async with asyncio.timeout(PATIENCE_S):
        out, _ = await process.communicate()
    assert process.returncode == 0, out
    return out.decode().splitlines()


@needs_mosquitto
@pytest.mark.parametrize("version", VERSIONS)
@pytest.mark.parametrize("qos", ["0", "1", "2"])
def test_mosquitto_reads_what_mosquitto_publishes_at_another_node(version: str, qos: str) -> None:
    async def scenario() -> None:
        async with three_doors() as (here, _, there):
            common = ("-V", version, "-q", qos)
            reader = await mosquitto("sub", there, *common, "-t", "a/b", "-v", "-C", "3", "-W", "15")
            await eventually(lambda: there.node.wants("a/b"))
            for text in ("one", "two", "three"):
                assert await said(await mosquitto("pub", here, *common, "-t", "a/b", "-m", text)) == []
            assert sorted(await said(reader)) == ["a/b one", "a/b three", "a/b two"]

    during(scenario())


@needs_mosquitto
@pytest.mark.parametrize("version", VERSIONS)
def test_mosquitto_gets_what_is_retained_by_a_wildcard_at_another_node(version: str) -> None:
    async def scenario() -> None:
        async with three_doors() as (here, there, _):
            for name in ("x", "y"):
                await said(await mosquitto("pub", here, "-V", version, "-q", "1", "-r", "-t", f"a/{name}", "-m", name))
            await said(await mosquitto("pub", here, "-V", version, "-q", "1", "-t", "a/z", "-m", "not retained"))
            common = ("-V", version, "-t", "a/+", "-v", "-C", "2", "-W", "15", "--retained-only")
            assert sorted(await said(await mosquitto("sub", there, *common))) == ["a/x x", "a/y y"]

    during(scenario())


def client(door: Door, version: str, **options: Any) -> aiomqtt.Client:
    host, port = door.endpoint
    return aiomqtt.Client(host, port, protocol=VERSIONS[version], timeout=PATIENCE_S, **options)


async def texts(reader: aiomqtt.Client, count: int) -> list[str]:
    found = []
    async with asyncio.timeout(PATIENCE_S):
        async for message in reader.messages:
            found.append(f"{message.topic} {bytes(message.payload).decode()}")
            if len(found) == count:
                break
    return sorted(found)


@pytest.mark.parametrize("version", VERSIONS)
def test_aiomqtt_at_three_nodes(version: str) -> None:
    async def scenario() -> None:
        async with (
            three_doors() as doors,
            client(doors[0], version) as a,
            client(doors[1], version) as b,
            client(doors[2], version) as c,
        ):
            for reader in (b, c):
                await reader.subscribe([("a/#", 1), ("b", 2), ("c", 0)])
            await asyncio.sleep(1)
            for topic, qos in (("a/x", 1), ("b", 2), ("c", 0)):
                await a.publish(topic, f"of {topic}", qos=qos)
            for reader in (b, c):
                assert await texts(reader, 3) == ["a/x of a/x", "b of b", "c of c"]

    during(scenario())


@pytest.mark.parametrize("version", VERSIONS)
def test_a_will_of_aiomqtt_is_read_at_another_node(version: str) -> None:
    async def scenario() -> None:
        async with three_doors() as (here, there, _):
            will = aiomqtt.Will("wills", "gone", qos=1)
            async with client(there, version) as reader, client(here, version, identifier="rude", will=will):
                await reader.subscribe("wills", qos=1)
                conversation = here.sessions["rude"].conversation
                assert conversation is not None
                conversation.connection.cut()
                assert await texts(reader, 1) == ["wills gone"]

    during(scenario())


def test_paho_with_all_that_version_5_has() -> None:
    """In a thread of its own, as most programs use it."""

    async def scenario() -> None:
        async with three_doors() as (here, there, _):
            got: list[paho.MQTTMessage] = []
            codes: list[Any] = []
            reader = paho.Client(paho.CallbackAPIVersion.VERSION2, "reader", protocol=paho.MQTTv5)

            def on_message(_: paho.Client, __: object, message: paho.MQTTMessage) -> None:
                got.append(message)

            def on_connect(connected: paho.Client, *_: object) -> None:
                connected.subscribe("a/+", qos=2)

            def on_subscribe(_: paho.Client, __: object, ___: int, reasons: list[Any], *____: object) -> None:
                codes.extend(reasons)

            reader.on_message, reader.on_connect, reader.on_subscribe = on_message, on_connect, on_subscribe
            writer = paho.Client(paho.CallbackAPIVersion.VERSION2, "writer", protocol=paho.MQTTv5)
            for one, door in ((reader, there), (writer, here)):
                await asyncio.to_thread(one.connect, *door.endpoint)
                one.loop_start()
            try:
                await eventually(lambda: len(codes) == 1)
                properties = Properties(paho.PacketTypes.PUBLISH)
                properties.UserProperty = [("unit", "C"), ("acks", "0")]
                properties.ResponseTopic = "answers"
                sent = writer.publish("a/b", b"-3", qos=2, properties=properties)
                await asyncio.to_thread(sent.wait_for_publish, PATIENCE_S)
                await eventually(lambda: len(got) == 1)
                assert (got[0].topic, got[0].payload, got[0].qos) == ("a/b", b"-3", 2)
                assert getattr(got[0].properties, "ResponseTopic", None) == "answers"
            finally:
                for one in (reader, writer):
                    one.disconnect()
                    await asyncio.to_thread(one.loop_stop)

    during(scenario())


@pytest.mark.parametrize("acks", [1, 2])
def test_a_client_may_ask_that_others_have_its_message_too(acks: int) -> None:
    async def scenario() -> None:
        async with three_doors() as doors:
            clients = [client(door, "5") for door in doors]
            async with clients[0] as writer, clients[1] as reader, clients[2] as other:
                for one in (reader, other):
                    await one.subscribe("a", qos=1)
                properties = Properties(paho.PacketTypes.PUBLISH)
                properties.UserProperty = ("acks", str(acks))
                await writer.publish("a", "kept", qos=1, properties=properties)
                assert doors[0].node.stats()["unconfirmed"] == 0
                assert await texts(reader, 1) == ["a kept"]

    during(scenario())
