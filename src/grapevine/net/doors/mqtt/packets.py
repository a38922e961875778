"""Messages of events, and packets of MQTT 5 that carry them."""

from __future__ import annotations

from time import time

import mqtt5

from grapevine.net.doors.mqtt.message import Extras, Message
from grapevine.net.doors.mqtt.session import Delivery


def extras_of(packet: mqtt5.PublishPacket | mqtt5.Will, client: str) -> Extras:
    """What is to travel with the payload; `client` is who publishes, if it wants none of its own messages."""
    return Extras(
        retain=packet.retain,
        is_text=bool(packet.payload_format_indicator),
        expiry_s=packet.message_expiry_interval,
        content_type=packet.content_type,
        response_topic=packet.response_topic,
        correlation=packet.correlation_data,
        user=tuple((name, value) for name, value in packet.user_properties),
        client=client,
    )


def publication(
    message: Message, delivery: Delivery, number: int | None, *, is_again: bool
) -> mqtt5.PublishPacket | None:
    """The packet that brings a message to a client, whose properties are as they were published (MQTT-3.3.2-4,
    MQTT-3.3.2-15 to 20); None if the message has expired."""
    left = message.seconds_left(time())
    if left is not None and left <= 0:
        return None
    extras = message.extras
    return mqtt5.PublishPacket(
        message.topic,
        message.payload,
        qos=mqtt5.QoS(delivery.qos),
        retain=delivery.retain,
        packet_id=number,
        duplicate=is_again,
        payload_format_indicator=int(extras.is_text),
        message_expiry_interval=left,
        content_type=extras.content_type,
        response_topic=extras.response_topic,
        correlation_data=extras.correlation,
        subscription_ids=list(delivery.identifiers),
        user_properties=list(extras.user),
    )
