"""What a node tells a monitoring system: `Node.stats()` as Prometheus' metrics."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from prometheus_client import CollectorRegistry, ProcessCollector
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, InfoMetricFamily
from prometheus_client.metrics_core import Metric
from prometheus_client.registry import Collector

from grapevine.net.health import NAMES
from grapevine.net.node import Node

_GAUGES = {
    "peers": "Open connections",
    "links": "Links of the overlay",
    "subscriptions": "Topics that applications want",
    "carried": "Topics that the node wants or carries for others",
    "unsent": "Events that wait for somebody to hand them to",
    "unconfirmed": "Events that fewer others have confirmed than were to",
    "forked": "Streams of which there is evidence that their publisher contradicts itself",
    "dropped": "Events that readers who are connected now were too slow for",
}
_COUNTERS = {
    "published": "Events that this node published",
    "delivered": "Events for its applications",
    "recovered": "Events that were missed, and asked for",
    "given_up": "Events that were missed, and that nobody has",
    "returned": "Events of this node that others had, and its folder had not",
}
_FAMILIES = {
    "rejected": ("reason", "What others sent, and was refused"),
    "counts": ("what", "What befell connections"),
    "failures": ("error", "Mistakes of ours that a message or a timer brought to light"),
    "sent": ("kind", "Messages sent"),
    "received": ("kind", "Messages received"),
}
_NAMES = {"counts": "connections", "sent": "messages_sent", "received": "messages_received"}


def registry_of(node: Node) -> CollectorRegistry:
    """The node's metrics and those of its process, in a registry of their own."""
    registry = CollectorRegistry(auto_describe=False)
    ProcessCollector(registry=registry)
    registry.register(_NodeCollector(node))
    return registry


class _NodeCollector(Collector):
    """Asks the node whenever somebody reads."""

    def __init__(self, node: Node) -> None:
        self._node = node

    def collect(self) -> Iterable[Metric]:
        stats = self._node.stats()
        yield InfoMetricFamily("grapevine_node", "Which node this is", {"peer": str(self._node.id)})
        for name, help in _GAUGES.items():
            yield GaugeMetricFamily(f"grapevine_{name}", help, stats[name])
        for name, help in _COUNTERS.items():
            yield CounterMetricFamily(f"grapevine_{name}", help, stats[name])
        for name, (label, help) in _FAMILIES.items():
            yield _family(f"grapevine_{_NAMES.get(name, name)}", help, label, stats[name])
        conditions = GaugeMetricFamily("grapevine_condition", "1 while something is wrong", labels=["name"])
        found = {condition.name for condition in self._node.conditions()}
        for name in NAMES:
            conditions.add_metric([name], name in found)
        yield conditions
        sizes = {"in": stats["bytes_in"], "out": stats["bytes_out"]}
        yield _family("grapevine_bytes", "Bytes of frames, before encryption", "direction", sizes)


def _family(name: str, help: str, label: str, counts: Mapping[str, int]) -> CounterMetricFamily:
    family = CounterMetricFamily(name, help, labels=[label])
    for value, count in sorted(counts.items()):
        family.add_metric([value], count)
    return family
