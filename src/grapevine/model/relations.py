"""Subscriptions by name, as they come from Python: dicts, data frames and graphs, checked and numbered.

`Workload.from_dict` and its like are made of these. Names are numbered in natural order, as an ingest numbers them.
"""

from __future__ import annotations

import difflib
from collections.abc import Hashable, Iterable, Mapping
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from grapevine.model import arguments
from grapevine.model.errors import UsageError
from grapevine.model.names import as_texts, natural_order
from grapevine.model.settings import unknown_names


class Relations(NamedTuple):
    """Who wants what, by numbers, and the names that the numbers stand for."""

    nodes: NDArray[np.int32]  # of each subscription
    topics: NDArray[np.int32]  # of each subscription
    node_names: list[str]
    topic_names: list[str]
    rates: NDArray[np.float64]  # by topic
    publishers: NDArray[np.int32]  # by topic; -1: nobody said

    @classmethod
    def of_dict(
        cls, wanted: Any, rates: Mapping[Any, float] | None = None, publishers: Mapping[Any, Any] | None = None
    ) -> Relations:
        """From the topics that every node wants; rates and publishers are by topic. What `Workload.from_dict` says."""
        rows = _rows(wanted)
        rates = {} if rates is None else arguments.mapping("rates", rates, "{'news': 2.5}")
        publishers = {} if publishers is None else arguments.mapping("publishers", publishers, "{'news': 'ann'}")
        nodes = as_texts(rows, "node")
        topics = as_texts((*(topic for row in rows.values() for topic in row), *rates, *publishers), "topic")
        node_names, topic_names = natural_order(nodes.values()), natural_order(topics.values())
        node_of = {text: number for number, text in enumerate(node_names)}
        topic_of = {text: number for number, text in enumerate(topic_names)}
        pairs = [(node_of[nodes[node]], topic_of[topics[topic]]) for node, row in rows.items() for topic in row]
        rate, publisher = np.ones(len(topic_names)), np.full(len(topic_names), -1, np.int32)
        for topic, value in rates.items():
            rate[topic_of[topics[topic]]] = arguments.amount(f"rates[{topic!r}]", value)
        for topic, node in publishers.items():
            if str(node) not in node_of:
                raise UsageError(f"publishers[{topic!r}]={node!r}: is no node{_nearest(str(node), node_names)}")
            publisher[topic_of[topics[topic]]] = node_of[str(node)]
        numbers = np.array(pairs, np.int32).reshape(-1, 2).T
        return cls(numbers[0], numbers[1], node_names, topic_names, rate, publisher)

    @classmethod
    def of_frame(cls, frame: Any, user: Any, item: Any, rate: Any | None) -> Relations:
        """From a row for each subscription of a data frame. What `Workload.from_pandas` says."""
        if not hasattr(frame, "columns") or not hasattr(frame, "isna"):
            arguments.refuse("frame", frame, "a data frame of pandas", "a dict goes to Workload.from_dict")
        if not frame.columns.is_unique:
            raise UsageError("the frame has columns of the same name; call each of them differently")
        columns = [user, item] if rate is None else [user, item, rate]
        unknown = [column for column in columns if not isinstance(column, Hashable) or column not in frame.columns]
        if mistakes := unknown_names("the frame", unknown, [str(column) for column in frame.columns], noun="column"):
            raise UsageError(mistakes[0])
        for column in columns:
            if missing := int(frame[column].isna().sum()):
                raise UsageError(f"column {column}: {missing:,} values are missing; drop their rows")
        wanted: dict[Any, list[Any]] = {}
        for who, what in zip(frame[user].tolist(), frame[item].tolist(), strict=True):
            wanted.setdefault(who, []).append(what)
        rates: dict[Any, float] = {}
        for what, value in zip(frame[item].tolist(), [] if rate is None else frame[rate].tolist(), strict=False):
            if rates.setdefault(what, value) != value:
                raise UsageError(f"item {what}: has the rates {rates[what]} and {value}; give it one")
        return cls.of_dict(wanted, rates)

    @classmethod
    def of_graph(cls, graph: Any) -> Relations:
        """From a graph of who follows whom. What `Workload.from_networkx` says."""
        if not hasattr(graph, "adj"):
            arguments.refuse("graph", graph, "a graph of networkx", "a dict goes to Workload.from_dict")
        wanted: dict[Any, list[Any]] = {node: [other for other in graph[node] if other != node] for node in graph}
        followed = {topic for topics in wanted.values() for topic in topics}
        return cls.of_dict(wanted, publishers={topic: topic for topic in followed})


def _rows(wanted: Any) -> dict[Any, list[Any]]:
    """Every node's topics, each once."""
    if not isinstance(wanted, Mapping):
        arguments.refuse("wanted", wanted, "a dict from nodes to their topics, e.g. {'ann': ['news']}")
    for node, topics in wanted.items():
        if isinstance(topics, str | bytes) or not isinstance(topics, Iterable):
            arguments.refuse(f"wanted[{node!r}]", topics, "a list of topics")
    rows = {node: list(topics) for node, topics in wanted.items()}
    for node, topics in rows.items():
        for topic in topics:
            if not isinstance(topic, Hashable):
                arguments.refuse(f"a topic of wanted[{node!r}]", topic, "a name, as a text or a number")
    return {node: list(dict.fromkeys(topics)) for node, topics in rows.items()}


def _nearest(name: str, known: list[str]) -> str:
    """Which of the known names was meant, if one is close; otherwise what to do."""
    near = difflib.get_close_matches(name, known, n=1)
    return f"; did you mean {near[0]!r}?" if near else "; name one, or add it with the topics that it wants"
