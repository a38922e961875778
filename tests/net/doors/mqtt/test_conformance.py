"""Statements of the MQTT 5 standard, by their numbers, as a client sees them. What the door does otherwise is listed in
docs/guide/mqtt.md."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any

import mqtt5
import pytest

from grapevine.net.doors.mqtt.door import Door
from tests.net.doors.mqtt.doors import Client, one_door
from tests.net.nodes import during

CONNECT = mqtt5.ConnectPacket("client", clean_start=True).write()
QOS = mqtt5.QoS


def at_a_door(scenario: Callable[[Door], Awaitable[None]], **config: Any) -> None:
    """Play it at the door of a node that is alone."""

    async def whole() -> None:
        async with one_door(**config) as door:
            await scenario(door)

    during(whole())


# Packets


@pytest.mark.parametrize(
    ("frame", "reason"),
    [
        (b"\x30\x04\x00\x01\xff\x00", 0x81),  # MQTT-1.5.4-1: ill-formed UTF-8
        (b"\x30\x06\x00\x03\xed\xa0\x80\x00", 0x81),  # MQTT-1.5.4-1: a surrogate
        (b"\x30\x05\x00\x01\x00\x00x", 0x81),  # MQTT-1.5.4-2: U+0000
        (b"\x30\x0b\x00\x01a\x07\x26\x00\x01\xff\x00\x01b", 0x81),  # MQTT-1.5.4-1: in a property
        (b"\x62\x80\x80\x80\x80\x01", 0x81),  # MQTT-1.5.5-1: a length of five bytes
        (b"\x80\x07\x00\x01\x00\x00\x01a\x00", 0x81),  # MQTT-2.1.3-1, MQTT-3.8.1-1: reserved flags
        (b"\x60\x02\x00\x01", 0x81),  # MQTT-3.6.1-1: flags of PUBREL
        (b"\x82\x07\x00\x00\x00\x00\x01a\x00", 0x82),  # MQTT-2.2.1-3: identifier 0
        (b"\x32\x07\x00\x01a\x00\x00\x00x", 0x82),  # MQTT-2.2.1-3
        (b"\x36\x07\x00\x01a\x00\x01\x00x", 0x81),  # MQTT-3.3.1-4: QoS 3
        (b"\x30\x05\x00\x01#\x00x", 0x90),  # MQTT-3.3.2-2: a wildcard in a name
        (b"\x30\x04\x00\x00\x00x", 0x81),  # MQTT-4.7.3-1: an empty name
        (b"\x82\x03\x00\x01\x00", 0x82),  # MQTT-3.8.3-2: no filter
        (b"\x82\x07\x00\x01\x00\x00\x01a\xc0", 0x81),  # MQTT-3.8.3-5: reserved options
        (b"\x82\x10\x00\x01\x00\x00\x0a$share/g/a\x04", 0x82),  # MQTT-3.8.3-4: shared and not local
        (b"\xa2\x03\x00\x01\x00", 0x82),  # MQTT-3.10.3-2: no filter
        (b"\x30\x08\x00\x01a\x03\x23\x00\x00x", 0x81),  # MQTT-3.3.2-8: topic alias 0
        (b"\x30\x08\x00\x01a\x03\x23\x7f\xffx", 0x94),  # MQTT-3.3.2-9: an alias beyond the maximum
        (b"\x30\x07\x00\x00\x03\x23\x00\x05x", 0x82),  # an alias that was not set
        (b"\x20\x03\x00\x00\x00", 0x82),  # what only servers send
        (b"\xf0\x00", 0x81),  # AUTH without a method
        (CONNECT, 0x82),  # MQTT-3.1.0-2: a second CONNECT
        (b"\x30\xff\xff\xff\x7f", 0x95),  # a packet beyond the maximum
    ],
)
def test_what_no_client_may_send_ends_the_connection_with_a_reason(frame: bytes, reason: int) -> None:
    async def scenario(door: Door) -> None:
        client = await Client.of(door, "client")
        client.send(frame)
        assert await client.is_cut_off(reason)
        assert (await Client.of(door, "client")).answer.reason_code == 0

    at_a_door(scenario)


@pytest.mark.parametrize(
    "frame",
    [
        mqtt5.PingReqPacket().write(),  # MQTT-3.1.0-1: the first packet is CONNECT
        b"GET / HTTP/1.1\r\n\r\n",
        CONNECT.replace(b"MQTT", b"MQTX"),  # MQTT-3.1.2-1
        CONNECT.replace(b"MQTT\5", b"MQTT\3"),  # MQTT-3.1.2-2
        CONNECT[:9] + b"\3" + CONNECT[10:],  # MQTT-3.1.2-3: the reserved flag
        CONNECT[:9] + b"\x1a" + CONNECT[10:],  # MQTT-3.1.2-11: flags of a will, and no will
    ],
)
def test_who_does_not_begin_with_a_sound_connect_is_not_answered_as_a_client(frame: bytes) -> None:
    async def scenario(door: Door) -> None:
        client = await Client.at(door)
        client.send(frame)
        packet = await client.next()
        assert packet is None or isinstance(packet, mqtt5.DisconnectPacket)

    at_a_door(scenario)


# CONNECT


def test_a_client_without_a_name_is_given_one() -> None:
    """MQTT-3.1.3-6, MQTT-3.1.3-7."""

    async def scenario(door: Door) -> None:
        first, second = await Client.of(door), await Client.of(door)
        names = first.answer.assigned_client_id, second.answer.assigned_client_id
        assert all(names) and names[0] != names[1]
        assert (await Client.of(door, "mine")).answer.assigned_client_id is None

    at_a_door(scenario)


def test_what_the_door_cannot_do_it_says_at_once() -> None:
    async def scenario(door: Door) -> None:
        answer = (await Client.of(door, "client", session_expiry_interval=10**9)).answer
        assert answer.session_expiry_interval == 7 * 86_400  # MQTT-3.2.2-21 and around
        assert (answer.receive_max, answer.topic_alias_max) == (256, 32)
        assert answer.max_packet_size == 2 * 65_536
        assert not answer.shared_subscription_available

    at_a_door(scenario)


def test_a_method_of_authentication_is_refused() -> None:
    async def scenario(door: Door) -> None:
        answer = (await Client.of(door, "client", authentication_method="SCRAM")).answer
        assert answer.reason_code == mqtt5.ConnAckReasonCode.BAD_AUTHENTICATION_METHOD  # MQTT-4.12.0-1

    at_a_door(scenario)


def test_one_connection_at_a_time_has_a_name() -> None:
    """MQTT-3.1.4-3."""

    async def scenario(door: Door) -> None:
        first = await Client.of(door, "client")
        second = await Client.of(door, "client")
        assert await first.is_cut_off(0x8E)
        second.send(mqtt5.PingReqPacket())
        await second.get(mqtt5.PingRespPacket)  # MQTT-3.12.4-1

    at_a_door(scenario)


def test_who_is_silent_for_one_and_a_half_times_the_keep_alive_is_cut_off() -> None:
    """MQTT-3.1.2-22."""

    async def scenario(door: Door) -> None:
        client = await Client.of(door, "client", keep_alive=1)
        assert await client.is_cut_off(0x8D)

    at_a_door(scenario)


def test_who_does_not_say_connect_in_time_is_cut_off() -> None:
    async def scenario(door: Door) -> None:
        assert await (await Client.at(door)).is_cut_off()

    at_a_door(scenario, connect_s=0.2)


# Sessions


def test_a_session_waits_for_its_client_and_a_clean_start_forgets_it() -> None:
    """MQTT-3.1.2-4, MQTT-3.1.2-5, MQTT-3.1.2-6, MQTT-3.1.2-23, MQTT-3.2.2-2, MQTT-3.2.2-3."""

    async def scenario(door: Door) -> None:
        writer = await Client.of(door, "writer")
        reader = await Client.of(door, "reader", clean_start=False, session_expiry_interval=60)
        assert not reader.answer.session_present
        await reader.subscribe("a", qos=1)
        await reader.leave()
        await writer.publish("a", b"meanwhile", 1)
        again = await Client.of(door, "reader", clean_start=False, session_expiry_interval=60)
        assert again.answer.session_present
        assert (await again.message()).payload == b"meanwhile"
        clean = await Client.of(door, "reader", clean_start=True, session_expiry_interval=60)
        assert not clean.answer.session_present
        await writer.publish("a", b"nobody", 1)
        assert await clean.is_quiet()
        assert "a" not in door.node.subscriptions

    at_a_door(scenario)


def test_a_session_without_expiry_ends_with_its_connection() -> None:
    async def scenario(door: Door) -> None:
        reader = await Client.of(door, "reader")
        await reader.subscribe("a", qos=1)
        await reader.leave()
        assert not (await Client.of(door, "reader", clean_start=False)).answer.session_present
        assert "a" not in door.node.subscriptions

    at_a_door(scenario)


def test_a_session_expires() -> None:
    async def scenario(door: Door) -> None:
        reader = await Client.of(door, "reader", session_expiry_interval=1)
        await reader.subscribe("a", qos=1)
        await reader.leave()
        async with asyncio.timeout(10):
            while door.sessions or "a" in door.node.subscriptions:
                await asyncio.sleep(0.05)

    at_a_door(scenario)


def test_a_session_may_be_ended_or_shortened_by_disconnect_but_not_begun() -> None:
    """MQTT-3.14.2-2."""

    async def scenario(door: Door) -> None:
        short = await Client.of(door, "short", session_expiry_interval=60)
        await short.leave(session_expiry_interval=0)
        assert not (await Client.of(door, "short", clean_start=False)).answer.session_present
        none = await Client.of(door, "none")
        none.send(mqtt5.DisconnectPacket(session_expiry_interval=60))
        assert await none.is_cut_off(0x82)

    at_a_door(scenario)


@pytest.mark.parametrize("qos", [1, 2])
def test_what_was_not_acknowledged_comes_again_under_its_number(qos: int) -> None:
    """MQTT-4.4.0-1, MQTT-3.3.1-1."""

    async def scenario(door: Door) -> None:
        options: dict[str, Any] = {"clean_start": False, "session_expiry_interval": 60}
        reader, writer = await Client.of(door, "reader", **options), await Client.of(door, "writer")
        await reader.subscribe("a", qos=qos)
        await writer.publish("a", b"one", 1)
        await writer.publish("a", b"two", 1)
        sent = [await reader.get(mqtt5.PublishPacket) for _ in range(2)]
        assert not any(packet.duplicate for packet in sent)
        reader.vanish()
        reader = await Client.of(door, "reader", **options)
        again = [await reader.get(mqtt5.PublishPacket) for _ in range(2)]
        assert all(packet.duplicate for packet in again)
        for packet in again:
            await reader.acknowledge(packet)
        assert [(one.packet_id, one.payload) for one in again] == [(one.packet_id, one.payload) for one in sent]
        await reader.leave()
        reader = await Client.of(door, "reader", **options)
        assert await reader.is_quiet()

    at_a_door(scenario)


def test_pubrel_comes_again_and_the_message_does_not() -> None:
    """MQTT-4.3.3-4 to MQTT-4.3.3-7."""

    async def scenario(door: Door) -> None:
        options: dict[str, Any] = {"clean_start": False, "session_expiry_interval": 60}
        reader, writer = await Client.of(door, "reader", **options), await Client.of(door, "writer")
        await reader.subscribe("a", qos=2)
        await writer.publish("a", b"one", 1)
        number = (await reader.get(mqtt5.PublishPacket)).packet_id
        assert number is not None
        reader.send(mqtt5.PubRecPacket(number))
        assert (await reader.get(mqtt5.PubRelPacket)).packet_id == number
        reader.vanish()
        reader = await Client.of(door, "reader", **options)
        assert (await reader.get(mqtt5.PubRelPacket)).packet_id == number
        reader.send(mqtt5.PubCompPacket(number))
        assert await reader.is_quiet()
        await writer.publish("a", b"two", 1)
        assert (await reader.message()).payload == b"two"

    at_a_door(scenario)


def test_a_message_of_qos_2_that_is_sent_again_is_published_once() -> None:
    """MQTT-4.3.3-10, MQTT-4.3.3-11, MQTT-4.3.3-12."""

    async def scenario(door: Door) -> None:
        options: dict[str, Any] = {"clean_start": False, "session_expiry_interval": 60}
        reader, writer = await Client.of(door, "reader"), await Client.of(door, "writer", **options)
        await reader.subscribe("a", qos=1)
        packet = mqtt5.PublishPacket("a", b"once", qos=QOS(2), packet_id=7)
        writer.send(packet)
        assert (await writer.get(mqtt5.PubRecPacket)).packet_id == 7
        writer.vanish()
        writer = await Client.of(door, "writer", **options)
        writer.send(mqtt5.PublishPacket("a", b"once", qos=QOS(2), packet_id=7, duplicate=True))
        assert (await writer.get(mqtt5.PubRecPacket)).packet_id == 7
        writer.send(mqtt5.PubRelPacket(7))
        assert (await writer.get(mqtt5.PubCompPacket)).reason_code == 0
        writer.send(mqtt5.PubRelPacket(7))
        assert (await writer.get(mqtt5.PubCompPacket)).reason_code == 0x92
        await writer.publish("a", b"another", 2, 7)
        assert [(await reader.message()).payload for _ in range(2)] == [b"once", b"another"]
        assert await reader.is_quiet()

    at_a_door(scenario)


# PUBLISH


def test_properties_come_as_they_were_published() -> None:
    """MQTT-3.3.2-4, MQTT-3.3.2-15 to MQTT-3.3.2-20."""

    async def scenario(door: Door) -> None:
        reader, writer = await Client.of(door, "reader"), await Client.of(door, "writer")
        await reader.subscribe("a", qos=1)
        given: dict[str, Any] = {
            "payload_format_indicator": 1,
            "content_type": "text/plain",
            "response_topic": "answers/here",
            "correlation_data": b"\0\xff",
            "user_properties": [("b", "2"), ("a", "1"), ("b", "2")],
        }
        await writer.publish("a", b"text", 1, **given)
        message = await reader.message()
        assert {name: getattr(message, name) for name in given} == given

    at_a_door(scenario)


def test_a_message_expires_and_says_how_long_it_has() -> None:
    """MQTT-3.3.2-5, MQTT-3.3.2-6."""

    async def scenario(door: Door) -> None:
        options: dict[str, Any] = {"clean_start": False, "session_expiry_interval": 60}
        reader, writer = await Client.of(door, "reader", **options), await Client.of(door, "writer")
        await reader.subscribe("a", qos=1)
        await reader.leave()
        await writer.publish("a", b"short", 1, message_expiry_interval=1)
        await writer.publish("a", b"long", 1, message_expiry_interval=100)
        await asyncio.sleep(1.2)
        reader = await Client.of(door, "reader", **options)
        message = await reader.message()
        assert message.payload == b"long" and 90 < (message.message_expiry_interval or 0) < 100

    at_a_door(scenario)


def test_an_alias_stands_for_a_topic() -> None:
    """MQTT-3.3.2-7, MQTT-3.3.2-12; a new connection begins without any."""

    async def scenario(door: Door) -> None:
        reader, writer = await Client.of(door, "reader"), await Client.of(door, "writer")
        await reader.subscribe("a", "b", qos=1)
        await writer.publish("a", b"1", 1, topic_alias=3)
        await writer.publish("", b"2", 1, topic_alias=3)
        await writer.publish("b", b"3", 1, topic_alias=3)
        await writer.publish("", b"4", 1, topic_alias=3)
        found = [await reader.message() for _ in range(4)]
        assert sorted((one.topic, one.payload) for one in found) == [("a", b"1"), ("a", b"2"), ("b", b"3"), ("b", b"4")]

    at_a_door(scenario)


def test_answers_come_in_the_order_of_the_messages_and_so_do_messages() -> None:
    """MQTT-4.6.0-2, MQTT-4.6.0-6."""

    async def scenario(door: Door) -> None:
        reader, writer = await Client.of(door, "reader"), await Client.of(door, "writer")
        await reader.subscribe("a", qos=1)
        for number in range(1, 201):
            writer.send(mqtt5.PublishPacket("a", b"%d" % number, qos=QOS(1), packet_id=number))
        assert [(await writer.get(mqtt5.PubAckPacket)).packet_id for _ in range(200)] == [*range(1, 201)]
        assert [int((await reader.message()).payload) for _ in range(200)] == [*range(1, 201)]

    at_a_door(scenario)


def test_no_more_messages_are_under_way_than_a_client_takes() -> None:
    """MQTT-3.3.4-9."""

    async def scenario(door: Door) -> None:
        reader, writer = await Client.of(door, "reader", receive_max=2), await Client.of(door, "writer")
        await reader.subscribe("a", qos=1)
        for number in range(1, 6):
            await writer.publish("a", b"%d" % number, 1)
        first, second = [await reader.get(mqtt5.PublishPacket) for _ in range(2)]
        assert await reader.is_quiet()
        assert first.packet_id and second.packet_id
        reader.send(mqtt5.PubAckPacket(second.packet_id))
        assert (await reader.message()).payload == b"3"

    at_a_door(scenario)


def test_who_sends_more_than_the_door_takes_is_cut_off() -> None:
    async def scenario(door: Door) -> None:
        writer = await Client.of(door, "writer")
        for number in range(1, 4):
            writer.send(mqtt5.PublishPacket("a", b"", qos=QOS(2), packet_id=number))
        found = [await writer.next() for _ in range(3)]
        assert [packet.reason_code for packet in found if isinstance(packet, mqtt5.DisconnectPacket)] == [0x93]

    at_a_door(scenario, receive_maximum=2)


def test_what_a_client_cannot_take_counts_as_delivered() -> None:
    """MQTT-3.1.2-24, MQTT-3.1.2-25."""

    async def scenario(door: Door) -> None:
        reader = await Client.of(door, "reader", max_packet_size=100, receive_max=1)
        writer = await Client.of(door, "writer")
        await reader.subscribe("a", qos=1)
        await writer.publish("a", bytes(200), 1)
        await writer.publish("a", b"short", 1)
        assert (await reader.message()).payload == b"short"

    at_a_door(scenario)


def test_names_of_the_servers_own_are_refused() -> None:
    """MQTT-4.7.2-1 and around."""

    async def scenario(door: Door) -> None:
        client = await Client.of(door, "client")
        client.send(mqtt5.PublishPacket("$directory/a", b"x", qos=QOS(1), packet_id=1))
        assert (await client.get(mqtt5.PubAckPacket)).reason_code == mqtt5.PubAckReasonCode.NOT_AUTHORIZED
        assert await client.subscribe("$SYS/#", "$share/group/a", qos=1) == [0x87, 0x9E]
        client.send(b"\x82\x10\x00\x01\x00\x00\x05a/#/b\x01\x00\x02a+\x01")  # MQTT-4.7.1-1, MQTT-4.7.1-2
        assert [int(code) for code in (await client.get(mqtt5.SubAckPacket)).reason_codes] == [0x8F, 0x8F]
        assert await client.subscribe("#", qos=1) == [1]
        await client.publish("a", b"x", 1)
        assert (await client.message()).topic == "a"  # and nothing of the directories
        assert await client.is_quiet()

    at_a_door(scenario)


# Retained messages


def test_what_is_retained_is_replaced_and_removed() -> None:
    """MQTT-3.3.1-5 to MQTT-3.3.1-8."""

    async def scenario(door: Door) -> None:
        writer = await Client.of(door, "writer")
        await writer.publish("a", b"1", 1, retain=True)
        await writer.publish("a", b"2", 1, retain=True)
        await writer.publish("a", b"3", 1)
        first = await Client.of(door, "first")
        await first.subscribe("a")
        message = await first.message()
        assert (message.payload, message.retain) == (b"2", True)
        await writer.publish("a", b"", 1, retain=True)
        second = await Client.of(door, "second")
        await second.subscribe("a", "#")
        assert await second.is_quiet()

    at_a_door(scenario)


def test_retained_messages_come_when_they_were_asked_for() -> None:
    """MQTT-3.3.1-9 to MQTT-3.3.1-11."""

    async def scenario(door: Door) -> None:
        writer, reader = await Client.of(door, "writer"), await Client.of(door, "reader")
        await writer.publish("a", b"kept", 1, retain=True)
        handling = mqtt5.RetainHandling
        for asked, comes in ((2, False), (1, False), (0, True), (0, True)):
            await reader.subscribe(mqtt5.TopicFilter("a", max_qos=QOS(1), retain_handling=handling(asked)))
            if comes:
                assert (await reader.message()).retain
            assert await reader.is_quiet()

    at_a_door(scenario)


@pytest.mark.parametrize("as_published", [False, True])
def test_the_retain_flag_of_a_live_message(as_published: bool) -> None:
    """MQTT-3.3.1-12, MQTT-3.3.1-13."""

    async def scenario(door: Door) -> None:
        writer, reader = await Client.of(door, "writer"), await Client.of(door, "reader")
        await reader.subscribe(mqtt5.TopicFilter("a", max_qos=QOS(1), retain_as_published=as_published))
        await writer.publish("a", b"kept", 1, retain=True)
        assert (await reader.message()).retain == as_published
        assert await reader.is_quiet()

    at_a_door(scenario)


# SUBSCRIBE and UNSUBSCRIBE


def test_a_client_gets_a_message_once_at_the_highest_of_its_qos_with_all_identifiers() -> None:
    """MQTT-3.3.4-2, MQTT-3.3.4-3, MQTT-3.3.4-4."""

    async def scenario(door: Door) -> None:
        writer, reader = await Client.of(door, "writer"), await Client.of(door, "reader")
        await reader.subscribe("a/#", qos=0, subscription_id=5)
        await reader.subscribe("a/b", qos=2, subscription_id=7)
        await reader.subscribe("+/b", qos=1)
        await writer.publish("a/b", b"x", 1)
        message = await reader.message()
        assert (message.qos, sorted(message.subscription_ids)) == (2, [5, 7])
        assert await reader.is_quiet()

    at_a_door(scenario)


def test_who_wants_none_of_its_own_messages_gets_none() -> None:
    """MQTT-3.8.3-3."""

    async def scenario(door: Door) -> None:
        one, other = await Client.of(door, "one"), await Client.of(door, "other")
        for client in (one, other):
            await client.subscribe(mqtt5.TopicFilter("a", max_qos=QOS(1), no_local=True))
        await one.publish("a", b"of one", 1)
        assert (await other.message()).payload == b"of one"
        assert await one.is_quiet()

    at_a_door(scenario)


@pytest.mark.parametrize("qos", [0, 1, 2])
def test_who_has_unsubscribed_gets_nothing_more(qos: int) -> None:
    """MQTT-3.10.4-1, MQTT-3.10.4-2, MQTT-3.10.4-4, MQTT-3.10.4-5."""

    async def scenario(door: Door) -> None:
        client = await Client.of(door, "client", session_expiry_interval=60)
        await client.subscribe("a", "b/#", qos=qos)
        client.send(mqtt5.UnsubscribePacket(9, ["a", "c"]))
        answer = await client.get(mqtt5.UnsubAckPacket)
        assert answer.packet_id == 9 and [int(code) for code in answer.reason_codes] == [0x00, 0x11]
        client.send(mqtt5.PublishPacket("a", b"x"))
        assert await client.is_quiet()
        assert "a" not in door.node.subscriptions
        client.send(mqtt5.PublishPacket("b/c", b"y"))
        assert (await client.message()).payload == b"y"

    at_a_door(scenario)


def test_a_subscription_that_replaces_another_changes_its_qos_and_loses_nothing() -> None:
    """MQTT-3.8.4-3, MQTT-3.8.4-4."""

    async def scenario(door: Door) -> None:
        writer, reader = await Client.of(door, "writer"), await Client.of(door, "reader", session_expiry_interval=60)
        for qos in (1, 2, 0, 1):
            assert await reader.subscribe("a", qos=qos) == [qos]
            await writer.publish("a", b"x", 1)
            assert (await reader.message()).qos == qos
            assert await reader.is_quiet(0.2)

    at_a_door(scenario)


# Wills


def test_a_will_is_published_when_its_client_vanishes_and_not_when_it_leaves() -> None:
    """MQTT-3.1.2-8, MQTT-3.1.2-10."""

    async def scenario(door: Door) -> None:
        reader = await Client.of(door, "reader")
        await reader.subscribe("wills/#", qos=1)
        will = mqtt5.Will("wills/a", payload=b"gone", qos=QOS(1), retain=True, content_type="text/plain")
        await (await Client.of(door, "polite", will=will)).leave()
        assert await reader.is_quiet()
        (await Client.of(door, "rude", will=will)).vanish()
        message = await reader.message()
        assert (message.payload, message.content_type) == (b"gone", "text/plain")
        await (await Client.of(door, "asks", will=will)).leave(
            reason_code=mqtt5.DisconnectReasonCode.DISCONNECT_WITH_WILL_MESSAGE
        )
        assert (await reader.message()).payload == b"gone"
        late = await Client.of(door, "late")
        await late.subscribe("wills/a")
        assert (await late.message()).retain

    at_a_door(scenario)


def test_a_will_waits_for_a_client_that_may_come_back() -> None:
    """MQTT-3.1.3-9, MQTT-3.1.2-8."""

    async def scenario(door: Door) -> None:
        reader = await Client.of(door, "reader")
        await reader.subscribe("wills", qos=1)
        will = mqtt5.Will("wills", payload=b"gone", will_delay_interval=1)
        options: dict[str, Any] = {"clean_start": False, "session_expiry_interval": 60}
        (await Client.of(door, "rude", will=will, **options)).vanish()
        back = await Client.of(door, "rude", will=will, **options)
        assert await reader.is_quiet(1.5)
        back.vanish()
        assert (await reader.message()).payload == b"gone"
        will = mqtt5.Will("wills", payload=b"at the end of the session", will_delay_interval=60)
        (await Client.of(door, "short", will=will, session_expiry_interval=1)).vanish()
        assert (await reader.message()).payload == b"at the end of the session"

    at_a_door(scenario)
