"""Bounds of the MQTT door: whatever a client can make grow has its bound here."""

from __future__ import annotations

from dataclasses import dataclass

from grapevine.model.config import Config, parameter


@dataclass(frozen=True, slots=True, kw_only=True)
class DoorConfig(Config):
    """How much the door gives to clients, and who may enter."""

    mqtt_users: str = parameter(
        "", "file of names and passwords, as mosquitto_passwd writes it; empty: anybody may enter", source="ours"
    )
    mqtt_certificate: str = parameter("", "PEM file of the door's certificate; empty: no TLS", source="ours")
    mqtt_key: str = parameter("", "PEM file of its key; empty: it is in the certificate's file", source="ours")
    most_clients: int = parameter(256, "clients connected at a time", source="ours: as peers", low=1)
    most_sessions: int = parameter(
        1_000, "sessions, those without a client included; newcomers are refused beyond", source="ours", low=1
    )
    most_filters: int = parameter(100, "subscriptions of a session", source="ours", low=1)
    most_feeds: int = parameter(
        10_000,
        "topics that sessions read (feeds), each session by itself; subscriptions beyond are refused",
        source="ours",
        low=1,
    )
    receive_maximum: int = parameter(
        256,
        "messages with acknowledgement under way, in each direction, for one client",
        source="ours",
        low=1,
        high=65_535,
    )
    topic_aliases: int = parameter(32, "topic aliases that a client may set", source="ours", low=0, high=65_535)
    client_bytes: int = parameter(
        1 << 20,
        "bytes that may wait for a client to read them; messages of QoS 0 are dropped beyond",
        source="ours",
        low=1024,
    )
    session_s: float = parameter(
        7 * 86_400.0, "seconds that a session waits for its client at most", source="ours: as events are kept", low=0
    )
    connect_s: float = parameter(10.0, "seconds until a client must have said CONNECT", source="ours", low=0.1)
    directory_names: int = parameter(
        10_000, "names of a directory that are remembered; the oldest go first", source="ours", low=1
    )
    retained_bytes: int = parameter(
        16 << 20, "bytes of retained messages of a directory; those of the oldest names go first", source="ours", low=0
    )
    settle_s: float = parameter(
        30.0, "seconds after a directory was opened in which retained messages still come late", source="ours", low=0
    )
