"""Bytes to packets and back: both versions, any packet, any garbage."""

from __future__ import annotations

import re

import mqtt5
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from grapevine.model.identity import PeerId
from grapevine.net.doors.mqtt import version3
from grapevine.net.doors.mqtt.codec import Codec
from grapevine.net.doors.mqtt.filters import first_level, is_filter, is_name, matches
from grapevine.net.doors.mqtt.message import MARK, Extras, Message, packed, unpacked
from grapevine.net.doors.mqtt.packets import publication
from grapevine.net.doors.mqtt.session import Delivery
from grapevine.net.doors.mqtt.texts import Malformed
from grapevine.net.envelope import Event

CONNECT = mqtt5.ConnectPacket("client").write()
CONNECT3 = b"\x10\x12\x00\x04MQTT\x04\x02\x00\x3c\x00\x06client"  # the example of 3.1.1 with this identifier
texts = st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\0"), max_size=20)
names = texts.filter(lambda text: bool(text) and not {"+", "#"} & set(text))
numbers = st.integers(1, 65_535)


def read(frame: bytes, connect: bytes = CONNECT) -> list[mqtt5.Packet]:
    codec = Codec(1 << 20)
    list(codec.packets(connect))
    return list(codec.packets(frame))


def size(content: bytes) -> bytes:
    return len(content).to_bytes(2, "big") + content


def frame3(first: int, body: bytes) -> bytes:
    """A packet of 3.1.1, put together by hand as section 2.2 says."""
    digits, left = bytearray(), len(body)
    while True:
        left, digit = divmod(left, 128)
        digits.append(digit + (128 if left else 0))
        if not left:
            return bytes((first,)) + bytes(digits) + body


# MQTT 3.1.1


@given(names, st.binary(max_size=300), st.integers(0, 2), st.booleans(), st.booleans(), numbers)
def test_a_publication_of_311_is_read_and_written(
    topic: str, payload: bytes, qos: int, retain: bool, again: bool, number: int
) -> None:
    """3.1.1, section 3.3."""
    given_number = number.to_bytes(2, "big") if qos else b""
    again = again and qos > 0
    frame = frame3(0x30 | again << 3 | qos << 1 | retain, size(topic.encode()) + given_number + payload)
    (packet,) = read(frame, CONNECT3)
    assert isinstance(packet, mqtt5.PublishPacket)
    assert (packet.topic, packet.payload, int(packet.qos)) == (topic, payload, qos)
    assert (packet.retain, packet.duplicate, packet.packet_id) == (retain, again, number if qos else None)
    assert version3.from_version5(packet) == frame


@given(st.lists(st.tuples(names, st.integers(0, 2)), min_size=1, max_size=5), numbers)
def test_subscriptions_of_311_are_read(asked: list[tuple[str, int]], number: int) -> None:
    """3.1.1, sections 3.8 and 3.10."""
    head = number.to_bytes(2, "big")
    body = b"".join(size(filter.encode()) + bytes((qos,)) for filter, qos in asked)
    (packet,) = read(frame3(0x82, head + body), CONNECT3)
    assert isinstance(packet, mqtt5.SubscribePacket) and packet.packet_id == number
    assert [(one.pattern, int(one.max_qos), one.no_local) for one in packet.topic_filters] == [
        (filter, qos, False) for filter, qos in asked
    ]
    (packet,) = read(frame3(0xA2, head + b"".join(size(filter.encode()) for filter, _ in asked)), CONNECT3)
    assert isinstance(packet, mqtt5.UnsubscribePacket) and packet.patterns == [filter for filter, _ in asked]


@given(
    texts,
    st.booleans(),
    st.integers(0, 65_535),
    st.none() | st.tuples(names, st.binary(max_size=50), st.integers(0, 2), st.booleans()),
    st.none() | st.tuples(texts, st.none() | st.binary(max_size=20)),
)
def test_connect_of_311_is_read(
    client: str,
    clean: bool,
    keep_alive: int,
    will: tuple[str, bytes, int, bool] | None,
    user: tuple[str, bytes | None] | None,
) -> None:
    """3.1.1, section 3.1."""
    flags, body = clean << 1, size(client.encode())
    if will is not None:
        flags |= 0x04 | will[2] << 3 | will[3] << 5
        body += size(will[0].encode()) + size(will[1])
    if user is not None:
        flags |= 0x80
        body += size(user[0].encode())
        if user[1] is not None:
            flags |= 0x40
            body += size(user[1])
    codec = Codec(1 << 20)
    head = b"\0\4MQTT\4" + bytes((flags,)) + keep_alive.to_bytes(2, "big")
    (packet,) = codec.packets(frame3(0x10, head + body))
    assert isinstance(packet, mqtt5.ConnectPacket) and codec.version == 4
    assert (packet.client_id, packet.clean_start, packet.keep_alive) == (client, clean, keep_alive)
    assert packet.session_expiry_interval == (0 if clean else 2**32 - 1)
    assert (packet.username, packet.password) == (user or (None, None))
    found = packet.will and (packet.will.topic, packet.will.payload or b"", int(packet.will.qos), packet.will.retain)
    assert found == will


def test_answers_of_311_have_neither_properties_nor_reasons() -> None:
    """3.1.1, sections 3.2, 3.4 to 3.7, 3.9, 3.11 and 3.13; a server of it says no DISCONNECT."""
    codes, refused = mqtt5.SubAckReasonCode, mqtt5.ConnAckReasonCode
    for packet, frame in (
        (mqtt5.ConnAckPacket(session_present=True, receive_max=5), "20020100"),
        (mqtt5.ConnAckPacket(reason_code=refused.UNSUPPORTED_PROTOCOL_VERSION), "20020001"),
        (mqtt5.ConnAckPacket(reason_code=refused.CLIENT_ID_NOT_VALID), "20020002"),
        (mqtt5.ConnAckPacket(reason_code=refused.QUOTA_EXCEEDED), "20020003"),
        (mqtt5.ConnAckPacket(reason_code=refused.BAD_USER_NAME_OR_PASSWORD), "20020004"),
        (mqtt5.ConnAckPacket(reason_code=refused.NOT_AUTHORIZED), "20020005"),
        (mqtt5.PubAckPacket(258, reason_str="x"), "40020102"),
        (mqtt5.PubRecPacket(258), "50020102"),
        (mqtt5.PubRelPacket(258), "62020102"),
        (mqtt5.PubCompPacket(258), "70020102"),
        (mqtt5.SubAckPacket(258, [codes.GRANTED_QOS_EXACTLY_ONCE, codes.QUOTA_EXCEEDED]), "900401020280"),
        (mqtt5.UnsubAckPacket(258, [mqtt5.UnsubAckReasonCode.SUCCESS]), "b0020102"),
        (mqtt5.PingRespPacket(), "d000"),
        (mqtt5.DisconnectPacket(), ""),
    ):
        assert version3.from_version5(packet).hex() == frame


@pytest.mark.parametrize(
    "frame",
    [
        b"\x82\x06\x00\x01\x00\x01a\x04",  # MQTT-3-8.3-4: reserved bits of the QoS
        b"\x40\x03\x00\x01\x00",  # an acknowledgement with a reason
        b"\xf0\x00",  # AUTH
        b"\x30\x02\x00\x05",
    ],
)
def test_what_311_does_not_have_is_refused(frame: bytes) -> None:
    with pytest.raises(Malformed):
        read(frame, CONNECT3)


def test_a_password_without_a_user_is_refused_in_311() -> None:
    """3.1.1, MQTT-3.1.2-22."""
    with pytest.raises(Malformed, match="without a user name"):
        list(Codec(1 << 20).packets(frame3(0x10, b"\0\4MQTT\4\x42\0\0" + size(b"c") + size(b"secret"))))


# Streams and garbage


@given(st.lists(st.integers(1, 60), max_size=20))
def test_packets_come_the_same_however_their_bytes_are_cut(cuts: list[int]) -> None:
    sent: list[mqtt5.Packet] = [mqtt5.PublishPacket("a", b"%d" % n * n) for n in range(5)]
    stream = CONNECT + b"".join(packet.write() for packet in sent) + mqtt5.PingReqPacket().write()
    codec, found, at = Codec(1 << 20), [], 0
    for cut in [*cuts, len(stream)]:
        found += list(codec.packets(stream[at : at + cut]))
        at += cut
    assert [type(packet) for packet in found] == [mqtt5.ConnectPacket, *[mqtt5.PublishPacket] * 5, mqtt5.PingReqPacket]
    assert [packet.payload for packet in found if isinstance(packet, mqtt5.PublishPacket)] == [
        b"%d" % n * n for n in range(5)
    ]


SEEDS = [
    CONNECT,
    CONNECT3,
    mqtt5.ConnectPacket(
        "c",
        will=mqtt5.Will("w", payload=b"x", content_type="t", user_properties=[("a", "b")]),
        username="u",
        password=b"p",
    ).write(),
    mqtt5.PublishPacket("a", b"x", user_properties=[("a", "b")], correlation_data=b"c", response_topic="r").write(),
    mqtt5.PublishPacket("a", b"x", qos=mqtt5.QoS(2), packet_id=3, content_type="t", subscription_ids=[9]).write(),
    mqtt5.SubscribePacket(1, [mqtt5.TopicFilter("a/#")], subscription_id=300, user_properties=[("a", "b")]).write(),
    mqtt5.UnsubscribePacket(1, ["a", "b"]).write(),
    mqtt5.PubAckPacket(1, reason_str="because").write(),
    mqtt5.DisconnectPacket(reason_str="because", session_expiry_interval=4).write(),
    mqtt5.AuthPacket(authentication_method="m", authentication_data=b"d").write(),
]


@given(
    st.sampled_from([b"", CONNECT, CONNECT3]),
    st.sampled_from(SEEDS),
    st.lists(st.tuples(st.integers(0, 80), st.integers(0, 255)), max_size=6),
    st.binary(max_size=40),
)
@example(CONNECT, b"\x30\x04\x00\x01\xff\x00", [], b"")  # mqtt5 0.8 panics at it
def test_garbage_is_malformed_or_a_packet_and_nothing_else(
    before: bytes, seed: bytes, changes: list[tuple[int, int]], behind: bytes
) -> None:
    """Whatever comes: packets, then perhaps Malformed. Anything else, as a panic of the codec, fails this test."""
    frame = bytearray(seed)
    for place, value in changes:
        frame[place % len(frame)] = value
    codec = Codec(1_000)
    try:
        for packet in codec.packets(before + bytes(frame) + behind):
            repr(packet)
    except Malformed as mistake:
        assert mistake.reason >= 0x80


@given(st.binary(max_size=200))
def test_noise_is_no_client(noise: bytes) -> None:
    try:
        assert all(isinstance(packet, mqtt5.ConnectPacket) for packet in Codec(1_000).packets(noise))
    except Malformed:
        return


# Names and filters

LEVELS = st.sampled_from(["a", "b", "", "$x", "ab"])


def as_pattern(filter: str) -> re.Pattern[str]:
    """Section 4.7 as a regular expression, written without looking at the door's way."""
    parts = [{"+": "[^/]*", "#": ".*"}.get(level, re.escape(level)) for level in filter.split("/")]
    text = "/".join(parts)
    return re.compile(("(?:" + "/".join(parts[:-1]) + "|" + text + ")") if filter.endswith("/#") else text, re.DOTALL)


@given(st.lists(LEVELS | st.just("+"), min_size=1, max_size=4), st.booleans(), st.lists(LEVELS, min_size=1, max_size=4))
def test_filters_match_as_a_regular_expression_does(levels: list[str], rest: bool, name_levels: list[str]) -> None:
    filter, name = "/".join([*levels, "#"] if rest else levels), "/".join(name_levels)
    expected = as_pattern(filter).fullmatch(name) is not None
    if name.startswith("$") and filter[:1] in ("+", "#"):
        expected = False  # MQTT-4.7.2-1
    assert matches(filter, name) == expected


def test_examples_of_the_standard() -> None:
    """4.7.1.2 and 4.7.1.3."""
    for name in ("sport/tennis/player1", "sport/tennis/player1/ranking", "sport/tennis/player1/score/wimbledon"):
        assert matches("sport/tennis/player1/#", name)
    assert matches("sport/#", "sport") and matches("#", "sport") and matches("+/+", "/finance")
    assert matches("sport/+", "sport/") and not matches("sport/+", "sport") and not matches("+", "/finance")
    assert [is_filter(text) for text in ("sport/tennis/#", "#", "+", "+/tennis/#", "sport/+/player1")] == [True] * 5
    assert [is_filter(text) for text in ("sport/tennis#", "sport/tennis/#/ranking", "sport+", "")] == [False] * 4
    assert [is_name(text) for text in ("a", "/", "a b", "$SYS/x", "a/+", "")] == [True, True, True, False, False, False]
    assert (first_level("a/b"), first_level("/b"), first_level("+/b"), first_level("#")) == ("a", "", None, None)


# What events carry


extras = st.builds(
    Extras,
    retain=st.booleans(),
    is_text=st.booleans(),
    expiry_s=st.none() | st.integers(0, 2**32 - 1),
    content_type=st.none() | texts,
    response_topic=st.none() | names,
    correlation=st.none() | st.binary(max_size=20),
    user=st.lists(st.tuples(texts, texts), max_size=3).map(tuple),
    client=texts,
)


@given(st.binary(max_size=50) | st.binary(max_size=50).map(lambda content: MARK + content), extras)
def test_a_message_comes_out_of_an_event_as_it_went_in(payload: bytes, given_extras: Extras) -> None:
    content = packed(payload, given_extras)
    assert unpacked(content) == (payload, given_extras)
    if given_extras == Extras() and not payload.startswith(MARK):
        assert content == payload  # other programs see nothing of MQTT


@given(
    st.binary(max_size=60) | extras.map(lambda one: packed(b"", one)),
    st.lists(st.tuples(st.integers(0), st.integers(0, 255))),
)
def test_whatever_others_put_into_an_event_can_be_sent(content: bytes, changes: list[tuple[int, int]]) -> None:
    changed = bytearray(MARK + b"\0\0\0" + content if not content.startswith(MARK) else content)
    for place, value in changes:
        changed[len(MARK) + place % (len(changed) - len(MARK))] = value
    message = Message.of(Event("a", PeerId(bytes(32)), 1, 2e9, bytes(changed)))
    packet = publication(message, Delivery(1, False, (5,)), 1, is_again=False)
    if packet is not None:
        assert mqtt5.read(memoryview(packet.write()))[0] is not None
