"""What a cluster and its groups of nodes say to each other: lines of JSON on standard input and output.

Both are of one version, since the cluster starts its groups; so nothing has to be understood by another one. Nodes are
called by their numbers in the workload, events by numbers that the cluster gives them.
"""

from __future__ import annotations

from typing import Any

import msgspec


class Order(msgspec.Struct, frozen=True, tag=True, tag_field="do"):
    """From the cluster to a group. What cannot be carried out is answered with `Failed`."""


class NewNode(msgspec.Struct, frozen=True):
    """One node that a group is to open."""

    node: int  # its number in the workload
    listen: str  # HOST:PORT; a node that comes back gets its old port
    bootstrap: list[str]
    data_dir: str | None = None  # None: it ends with the process


class Open(Order, frozen=True):
    """Start these nodes, all of one system and network. Answered with `Opened` when all of them run."""

    nodes: list[NewNode]
    system: str
    network: str
    parameters: dict[str, Any]  # of the system
    settings: dict[str, Any]  # of NodeConfig
    diary: str | None = None  # the folder of their diaries


class Subscribe(Order, frozen=True):
    """Subscribe nodes to topics, and report what applications read there. Answered with `Subscribed`."""

    topics: dict[int, list[str]]  # names, by node
    again: bool = False  # nodes that have been here before read from the beginning; named readers go on where they were
    reader: str | None = None  # the name under which they read; what named readers are given is reported (`Given`)


class Publish(Order, frozen=True):
    """Let a node publish an event. Answered with `Published`, sooner or later."""

    node: int
    topic: str
    event: int  # the payload repeats this number, so that readers know it (`payload_of`)
    bytes: int  # of the payload
    timeout: float | None = None  # seconds to wait for a path; None: the node's own setting


class Look(Order, frozen=True):
    """Tell with whom nodes exchange what. Answered with `Exchanges`."""


class Leave(Order, frozen=True):
    """Stop all nodes in good order, and end. The end of standard input says the same."""


class Answer(msgspec.Struct, frozen=True, tag=True, tag_field="is"):
    """From a group to the cluster."""


class Opened(Answer, frozen=True):
    """All nodes of an `Open` run now."""

    nodes: list[tuple[int, str, str]]  # number, peer id and endpoint


class Subscribed(Answer, frozen=True):
    """All subscriptions of a `Subscribe` are on the disk."""


class Published(Answer, frozen=True):
    """A node has published an event, or could not."""

    event: int
    time_us: int  # before the node was asked to, by the clock that all processes of the machine share
    error: str | None = None
    is_kept: bool = True  # also after an error, if that was NoPath: the event still has to arrive
    sequence: int | None = None  # its number, if the node told


class Exchanges(Answer, frozen=True):
    """With whom the nodes of the group exchange events."""

    partners: list[tuple[int, dict[int, list[int]]]]  # address of a node; addresses of its partners by topic id


class Given(msgspec.Struct, frozen=True, array_like=True):
    """An event that a named reader was given, or a gap."""

    node: int
    topic: str
    session: int  # of the reader; each time that it begins, it has another in its group
    publisher: str  # its peer id
    first: int  # sequence
    last: int
    event: int | None  # what the payload says; None: nobody's
    loss: str | None = None  # of a gap: the reason


class Report(Answer, frozen=True):
    """How the group is, twice a second. Counters are totals since the process started."""

    up: int  # nodes
    connections: int  # of all nodes together, and of the one that has most
    connections_max: int
    degree: int  # links of the overlay, likewise
    degree_max: int
    messages: int  # sent
    bytes: int  # sent, before encryption
    recovered: int  # events that were missed and asked for
    failures: int  # mistakes of ours
    damaged: int  # payloads that were not what was published
    cpu_s: float
    rss_bytes: int
    late_s: float  # how late this report is: how far the loop is behind its work
    arrivals: list[int]  # event, node and time (µs), in turn: what applications read since the last report
    given: list[Given] = []  # likewise, of named readers, gaps included


class Failed(Answer, frozen=True):
    """An order could not be carried out. Whoever waits for any answer of the group is told the sentence."""

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
