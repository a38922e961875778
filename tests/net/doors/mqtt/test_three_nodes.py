"""MQTT clients at the doors of three nodes, who talk across the overlay."""

from __future__ import annotations

import asyncio

import pytest

from tests.net.doors.mqtt.doors import Client, three_doors
from tests.net.nodes import during


@pytest.mark.parametrize("qos", [0, 1, 2])
def test_a_message_comes_to_all_three(qos: int) -> None:
    async def scenario() -> None:
        async with three_doors() as doors:
            clients = [await Client.of(door, f"client-{number}") for number, door in enumerate(doors)]
            for client in clients:
                assert await client.subscribe("a/b", qos=qos) == [qos]
            for door in doors:
                await door.node.ready("a/b", peers=1)
            writer = await Client.of(doors[0], "writer")
            await writer.publish("a/b", b"one", qos)
            for client in clients:
                message = await client.message()
                assert (message.topic, message.payload, message.qos, message.retain) == ("a/b", b"one", qos, False)

    during(scenario())


def test_retained_and_not_retained_messages_and_a_late_subscriber() -> None:
    async def scenario() -> None:
        async with three_doors() as doors:
            writer = await Client.of(doors[0], "writer")
            await writer.publish("a/b", b"kept", 1, retain=True)
            await writer.publish("a/b", b"not kept", 1)
            late = await Client.of(doors[2], "late")
            await late.subscribe("a/b", qos=1)
            message = await late.message()
            assert (message.payload, message.retain) == (b"kept", True)
            assert await late.is_quiet()

    during(scenario())


def test_a_wildcard_sees_topics_of_others_also_those_to_come() -> None:
    async def scenario() -> None:
        async with three_doors() as doors:
            writer = await Client.of(doors[0], "writer")
            await writer.publish("a/old", b"old", 1)
            reader = await Client.of(doors[1], "reader")
            everything = await Client.of(doors[2], "everything")
            await reader.subscribe("a/+", qos=1)
            await everything.subscribe("#", qos=1)
            await asyncio.sleep(2)
            await writer.publish("a/new", b"new", 1)
            await writer.publish("b/new", b"other", 1)
            await writer.publish("a/old", b"again", 1)
            assert {(await reader.message()).payload for _ in range(2)} == {b"new", b"again"}
            assert {(await everything.message()).payload for _ in range(3)} == {b"new", b"again", b"other"}

    during(scenario())
