"""A workload in memory: who subscribes to what, how often topics publish, and optionally churn and latency.

workload = Workload.load("twitter")              # what `grapevine workload …` wrote
workload.topics_of(7)                            # topic numbers, ascending
workload.subscribers_of(0)                       # node numbers, ascending
Workload.from_dict({"ann": ["news", "jazz"]})    # or from_pandas, from_networkx
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import ArrayLike, NDArray

from grapevine.kernels import csr
from grapevine.model import arguments, array_arguments, tables
from grapevine.model.config import MAX_COUNT
from grapevine.model.errors import UsageError
from grapevine.model.folder import new_folder
from grapevine.model.ids import ring_ids
from grapevine.model.location import Location, as_location, local_draft
from grapevine.model.manifest import Manifest, read_manifest
from grapevine.model.relations import Relations
from grapevine.model.store import read_table, write_table
from grapevine.model.workload_card import as_html, one_line
from grapevine.version import __version__


@dataclass(frozen=True, slots=True)
class Csr:
    """Compressed sparse rows: row r has the entries starts[r] … starts[r + 1]-1 of `columns`, ascending."""

    starts: NDArray[np.int64]
    columns: NDArray[np.int32]

    def row(self, row: int) -> NDArray[np.int32]:
        """The columns of one row: a view into `columns`, not to be written."""
        return self.columns[self.starts[row] : self.starts[row + 1]]

    def sizes(self) -> NDArray[np.int64]:
        """The number of columns in each row."""
        return np.diff(self.starts)


@dataclass(frozen=True, slots=True)
class Churn:
    """Sessions of nodes, a row each, by time of joining and node. Times are in seconds from the trace's origin."""

    node: NDArray[np.int32]
    joined_s: NDArray[np.float64]
    left_s: NDArray[np.float64]  # infinite where the node was still there at the end of the trace


@dataclass(frozen=True, slots=True)
class Latency:
    """Round-trip times in milliseconds, [slice, source, target]; NaN where nothing was measured."""

    rtt_ms: NDArray[np.float32]


@dataclass(frozen=True, eq=False)
class Workload:
    """Who subscribes to what; churn and latency where they were given. Nodes and topics are numbered from 0.

    Not to be changed: stages, systems and threads share one.
    """

    name: str  # of its folder, or its model
    node_topics: Csr  # node → topics
    topic_nodes: Csr  # topic → subscribers
    rates: NDArray[np.float64]  # by topic: events per day for timed traces, otherwise relative
    publishers: NDArray[np.int32]  # by topic: the node that publishes it; -1: the trace does not say
    node_names: Sequence[str]
    topic_names: Sequence[str]
    churn: Churn | None = None
    latency: Latency | None = None

    @classmethod
    def from_pairs(
        cls,
        nodes: ArrayLike,
        topics: ArrayLike,
        *,
        node_count: int,
        topic_count: int,
        rates: ArrayLike | None = None,
        publishers: ArrayLike | None = None,
        name: str = "workload",
    ) -> Workload:
        """A workload from distinct (node, topic) pairs in any order; names are the numbers. Rates are 1 unless given.

        UsageError if a number is not below its count, if a pair comes twice, or if rates and publishers are not one
        for each topic.
        """
        node_count = arguments.whole("node_count", node_count, high=MAX_COUNT)
        topic_count = arguments.whole("topic_count", topic_count, high=MAX_COUNT)
        node_topics = _by_node(nodes, topics, node_count, topic_count)
        same_row = np.diff(csr.row_numbers(node_topics.starts)) == 0
        if twice := np.count_nonzero(same_row & (np.diff(node_topics.columns) == 0)):
            raise UsageError(f"nodes, topics: {twice:,} pairs come more than once; give each once")
        return cls.from_rows(node_topics, topic_count=topic_count, rates=rates, publishers=publishers, name=name)

    @classmethod
    def from_rows(
        cls,
        node_topics: Csr,
        *,
        topic_count: int,
        rates: ArrayLike | None = None,
        publishers: ArrayLike | None = None,
        name: str = "workload",
    ) -> Workload:
        """A workload from every node's topics, distinct, ascending and below their count, which is not checked. The
        rest is as in `from_pairs`."""
        node_count = len(node_topics.starts) - 1
        if rates is not None:
            rates = array_arguments.amounts("rates", rates, topic_count)
        if publishers is not None:
            publishers = array_arguments.numbers_below("publishers", publishers, node_count, low=-1)
            array_arguments.check_length("publishers", publishers, topic_count)
        return cls(
            arguments.text("name", name),
            node_topics,
            _by_topic(node_topics, topic_count),
            node_names=_Numbers(node_count),
            topic_names=_Numbers(topic_count),
            rates=np.ones(topic_count) if rates is None else rates,
            publishers=np.full(topic_count, -1, np.int32) if publishers is None else publishers,
        )

    @classmethod
    def _from_relations(cls, found: Relations, name: str) -> Workload:
        made = cls.from_pairs(
            found.nodes,
            found.topics,
            node_count=len(found.node_names),
            topic_count=len(found.topic_names),
            rates=found.rates,
            publishers=found.publishers,
            name=name,
        )
        return replace(made, node_names=found.node_names, topic_names=found.topic_names)

    @classmethod
    def from_dict(
        cls,
        wanted: Mapping[Any, Iterable[Any]],
        *,
        rates: Mapping[Any, float] | None = None,
        publishers: Mapping[Any, Any] | None = None,
        name: str = "workload",
    ) -> Workload:
        """A workload from the topics that every node wants, by name: `{"ann": ["news", "jazz"], "bob": []}`.

        Nodes and topics are numbered in natural order of their names. `rates` and `publishers` are by topic; a topic
        without a rate has 1, and those that only they name are topics, too. UsageError for what cannot be names, and
        for publishers that are no nodes.
        """
        return cls._from_relations(Relations.of_dict(wanted, rates, publishers), name)

    @classmethod
    def from_pandas(
        cls, frame: Any, *, user: str = "user", item: str = "item", rate: str | None = None, name: str = "workload"
    ) -> Workload:
        """A workload from a data frame with a row for each subscription, in two columns: who, and to what. A third one
        may have the rate of the item, the same in all of its rows. UsageError for columns that are not there, and for
        missing values."""
        return cls._from_relations(Relations.of_frame(frame, user, item, rate), name)

    @classmethod
    def from_networkx(cls, graph: Any, *, name: str = "workload") -> Workload:
        """A workload from a graph of who follows whom: an edge from a to b subscribes a to the topic of b, which b
        publishes; without direction, both subscribe to each other. Nobody follows itself."""
        return cls._from_relations(Relations.of_graph(graph), name)

    def save(self, folder: str | Location, *, force: bool = False) -> None:
        """Store it as a workload folder, which commands read. UsageError if the folder is there and `force` is not
        given, or was not written by Grapevine. Churn and latency have folders of their own and are not stored."""
        with (
            new_folder(as_location(folder), kind="workload", force=force) as draft,
            local_draft(draft) as local,
        ):
            nodes = pa.table({"node": np.arange(self.node_count, dtype=np.int32), "name": list(self.node_names)})
            publishers = pa.array(self.publishers, mask=self.publishers < 0)
            topics = {"topic": np.arange(self.topic_count, dtype=np.int32), "name": list(self.topic_names)}
            whose = csr.row_numbers(self.node_topics.starts)
            written = {
                table.name: write_table(content, local, table)
                for table, content in (
                    (tables.NODES, nodes),
                    (tables.TOPICS, pa.table(topics | {"rate": self.rates, "publisher": publishers})),
                    (tables.SUBSCRIPTIONS, pa.table({"node": whose, "topic": self.node_topics.columns})),
                )
            }
            counts = {"subscribers": int(np.count_nonzero(self.node_topics.sizes()))}
            Manifest(kind="workload", stage="save", version=__version__, tables=written, counts=counts).write(local)

    @classmethod
    def load(
        cls, folder: str | Location, *, churn: str | Location | None = None, latency: str | Location | None = None
    ) -> Workload:
        """Read what a workload stage wrote. No Spark is needed.

        `churn` and `latency` name workload folders to take these tables from; without them there are none. UsageError
        if a folder is no complete workload, or has no such table.
        """
        folder = as_location(folder)
        manifest = read_manifest(folder, "workload")
        if "subscriptions" not in manifest.tables:
            held = ", ".join(sorted(set(manifest.tables) - {"nodes", "rejected"}))
            raise UsageError(f"{folder}: holds {held} but no subscriptions; give a workload with subscriptions")
        stored = manifest.tables_in(folder)
        nodes, topics = read_table(stored, tables.NODES), read_table(stored, tables.TOPICS)
        pairs = read_table(stored, tables.SUBSCRIPTIONS)
        subscribers, wanted = pairs["node"].to_numpy(), pairs["topic"].to_numpy()
        node_topics = _by_node(subscribers, wanted, len(nodes), len(topics))
        return cls(
            folder.name,
            node_topics,
            _by_topic(node_topics, len(topics)),
            node_names=_Texts(nodes["name"]),
            topic_names=_Texts(topics["name"]),
            rates=topics["rate"].to_numpy(),
            publishers=pc.fill_null(topics["publisher"], -1).to_numpy(),
            churn=load_churn(churn) if churn else None,
            latency=load_latency(latency) if latency else None,
        )

    @property
    def node_count(self) -> int:
        """The number of nodes, subscribers or not; they are 0 … node_count-1."""
        return len(self.node_names)

    @property
    def topic_count(self) -> int:
        """The number of topics; they are 0 … topic_count-1."""
        return len(self.topic_names)

    @property
    def subscription_count(self) -> int:
        """The number of subscriptions, which are (node, topic) pairs."""
        return len(self.node_topics.columns)

    @cached_property
    def node_ids(self) -> NDArray[np.uint64]:
        """Ring ids of the nodes, hashed from their names (`model/ids`)."""
        return ring_ids("node", self.node_names)

    @cached_property
    def topic_ids(self) -> NDArray[np.uint64]:
        """Ring ids of the topics, hashed from their names."""
        return ring_ids("topic", self.topic_names)

    def topics_of(self, node: int) -> NDArray[np.int32]:
        """Topics that the node subscribes to, ascending; UsageError if there is no such node."""
        return self.node_topics.row(arguments.whole("node", node, high=self.node_count - 1))

    def subscribers_of(self, topic: int) -> NDArray[np.int32]:
        """Nodes that subscribe to the topic, ascending; UsageError if there is no such topic."""
        return self.topic_nodes.row(arguments.whole("topic", topic, high=self.topic_count - 1))

    def __repr__(self) -> str:
        return one_line(self)

    def _repr_html_(self) -> str:
        return as_html(self)


def _by_node(nodes: ArrayLike, topics: ArrayLike, node_count: int, topic_count: int) -> Csr:
    """Rows by node from pairs in any order."""
    pairs = (
        array_arguments.numbers_below("nodes", nodes, node_count),
        array_arguments.numbers_below("topics", topics, topic_count),
    )
    array_arguments.check_length("topics", pairs[1], len(pairs[0]))
    return Csr(*csr.from_pairs(*pairs, node_count, topic_count))


def _by_topic(node_topics: Csr, topic_count: int) -> Csr:
    """The same subscriptions by topic."""
    return Csr(*csr.transpose(node_topics.starts, node_topics.columns, topic_count))


def load_churn(folder: str | Location) -> Churn:
    """The churn table of any workload folder; UsageError if it has none."""
    content, _ = _one_table(as_location(folder), tables.CHURN)
    content = content.sort_by([("joined_s", "ascending"), ("node", "ascending")])
    left = pc.fill_null(content["left_s"], float("inf"))
    return Churn(content["node"].to_numpy(), content["joined_s"].to_numpy(), left.to_numpy())


def load_latency(folder: str | Location) -> Latency:
    """The latency table of any workload folder, as dense matrices over its nodes; UsageError if it has none."""
    content, manifest = _one_table(as_location(folder), tables.LATENCY)
    slices, nodes = pc.max(content["slice"]).as_py() + 1, manifest.tables["nodes"]
    rtt_ms = np.full((slices, nodes, nodes), np.nan, np.float32)
    rtt_ms[tuple(content[name].to_numpy() for name in ("slice", "source", "target"))] = content["rtt_ms"].to_numpy()
    return Latency(rtt_ms)


def _one_table(folder: Location, table: tables.Table) -> tuple[pa.Table, Manifest]:
    """A table of a workload folder, and the folder's manifest; UsageError if it has none."""
    manifest = read_manifest(folder, "workload")
    if table.name not in manifest.tables:
        raise UsageError(f"{folder}: has no {table.name} table; ingest or generate one")
    return read_table(manifest.tables_in(folder), table), manifest


class _Numbers(Sequence[str]):
    """Names 0 … count-1, without storing them."""

    def __init__(self, count: int) -> None:
        self._count = count

    def __len__(self) -> int:
        return self._count

    def __iter__(self) -> Iterator[str]:
        return map(str, range(self._count))

    def __getitem__(self, index):  # type: ignore[no-untyped-def]  # overloads would be longer than the class
        found = range(self._count)[index]
        return [str(i) for i in found] if isinstance(index, slice) else str(found)


class _Texts(Sequence[str]):
    """Names in an Arrow column: a tenth of the memory of Python strings."""

    def __init__(self, column: pa.ChunkedArray) -> None:
        self._column = column.combine_chunks()

    def __len__(self) -> int:
        return len(self._column)

    def __getitem__(self, index):  # type: ignore[no-untyped-def]
        found = self._column[index]
        return found.to_pylist() if isinstance(index, slice) else found.as_py()
