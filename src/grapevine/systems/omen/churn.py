"""What happened to nodes (OMen §3.3), and which of it is not mended yet, whoever knows of it.

A simple churn event is the join or the leave of one node; ours are also a change of its interests, and the meeting of a
newcomer with somebody who shares a topic that nobody else was known for. An event *begins* when it happens, is
*detected* when others can know of it (at once for a join and a graceful leave, after some silence for a crash), is
*open* while somebody has it on the desk, and is closed when a coordinator mended the overlay, or nobody is left who
knows of it.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field

from grapevine.kernels.csr import Columns
from grapevine.systems.omen.link_table import LinkTable

JOIN, LEAVE, CHANGE, MEET = "join", "leave", "change", "meet"


@dataclass(eq=False, slots=True)
class ChurnEvent:
    """One event, which several nodes may have on their desks; equal only to itself."""

    kind: str
    node: int  # to whom it happened
    began: int  # the round
    topics: Columns  # that have to be connected again
    neighbours: frozenset[int] = frozenset()  # of a node that left or changed, when it did
    detected: int = 0  # the round in which others know of it


@dataclass(slots=True)
class Churn:
    """Everything that is not mended yet, from the moment that it happened."""

    departed: dict[int, ChurnEvent] = field(default_factory=dict)  # by node: left or crashed, detected or not
    newcomers: list[int] = field(default_factory=list)  # joined since the last round began
    changed: list[ChurnEvent] = field(default_factory=list)  # changes of interest since the last round began
    open: list[ChurnEvent] = field(default_factory=list)  # detected, and known to somebody

    def clear(self) -> None:
        """Forget everything: the overlay is designed anew."""
        for record in (self.departed, self.newcomers, self.changed, self.open):
            record.clear()

    def unhandled(self, node: int) -> list[ChurnEvent]:
        """What has happened to the node and is not mended yet, but for its own join."""
        changes = [event for event in (*self.open, *self.changed) if event.kind == CHANGE and event.node == node]
        return [*changes, self.departed[node]] if node in self.departed else changes

    def neighbours_known(self, node: int, links: LinkTable) -> frozenset[int]:
        """The node's links, and those to nodes whose departure is not handled yet: its successors know both."""
        gone = {other for other, event in self.departed.items() if node in event.neighbours}
        return frozenset(links.known[node] | gone)

    def on_the_ring(self) -> Iterable[int]:
        """Nodes that stay listed on the ring until what happened to them is handled, so that it can be assigned."""
        return [event.node for event in self.open]

    def close(self, event: ChurnEvent) -> None:
        """The event is mended, or lost. A later departure of the same node stays."""
        if event in self.open:
            self.open.remove(event)
        if event.kind == LEAVE and self.departed.get(event.node) is event:
            del self.departed[event.node]
