"""What a cluster and its groups of nodes say to each other: lines of JSON on standard input and output."""

from __future__ import annotations

from typing import Any

import msgspec


class Order(msgspec.Struct, frozen=True, tag=True, tag_field="do"):
    """From the cluster to a group."""


class Place(msgspec.Struct, frozen=True):
    """One node of a group; `number` is its number in the workload."""

    number: int
    listen: str
    bootstrap: list[str]
    data_dir: str | None = None


class Open(Order, frozen=True):
    """Start these nodes."""

    places: list[Place]
    system: str
    network: str
    parameters: dict[str, Any]
    settings: dict[str, Any]
    diary: str | None = None


class Subscribe(Order, frozen=True):
    """Subscribe nodes to topics, and read what comes; since the beginning, if they have been here before."""

    topics: dict[int, list[str]]
    again: bool = False


class Publish(Order, frozen=True):
    """Let a node publish an event of so many bytes, which begin with its number."""

    node: int
    topic: str
    event: int
    bytes: int
    timeout: float | None = None


class Look(Order, frozen=True):
    """Tell with whom nodes exchange what."""


class Leave(Order, frozen=True):
    """Stop all nodes in good order, and end."""


class Answer(msgspec.Struct, frozen=True, tag=True, tag_field="is"):
    """From a group to the cluster."""


class Opened(Answer, frozen=True):
    """Nodes that run now: number, id and endpoint."""

    nodes: list[tuple[int, str, str]]


class Subscribed(Answer, frozen=True):
    """All subscriptions are made."""


class Published(Answer, frozen=True):
    """An event was published; the time is that before the node was asked to."""

    event: int
    time_us: int
    error: str | None = None


class Exchanges(Answer, frozen=True):
    """For every node, by address: partners of the topics that it wants or carries."""

    partners: list[tuple[int, dict[int, list[int]]]]


class Report(Answer, frozen=True):
    """How the group is; `arrivals` are event, node and time, in turn, since the last report."""

    up: int
    connections: int
    connections_max: int
    degree: int
    degree_max: int
    messages: int
    bytes: int
    recovered: int
    failures: int
    damaged: int
    cpu_s: float
    rss_bytes: int
    late_s: float  # the report itself: how far the loop is behind its work
    arrivals: list[int]


class Failed(Answer, frozen=True):
    """An order could not be carried out."""

    sentence: str


AnyOrder = Open | Subscribe | Publish | Look | Leave
AnyAnswer = Opened | Subscribed | Published | Exchanges | Report | Failed


def payload_of(event: int, size: int) -> bytes:
    """A payload that tells its event, and shows whether it was changed on the way."""
    number = event.to_bytes(8, "big")
    return (number * (size // 8 + 1))[: max(8, size)]


def event_in(payload: bytes) -> int | None:
    """The event whose payload this is; None if it is nobody's."""
    event = int.from_bytes(payload[:8], "big")
    return event if payload == payload_of(event, len(payload)) else None
