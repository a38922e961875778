"""Who handles a churn event, and who stands by (OMen §5, Algorithm 5).

Theory. Every node has L successors on the identifier ring, its *keepers*; all of them are told of what happens to it.
The nearest is the coordinator: it puts the event into its execution queue (exeQ) and mends the overlay when the backup
set that it keeps for the node is ready. The others stand by with a time-out. When the coordinator is done it tells the
keepers, and they forget the event. When the coordinator itself goes, that is an event of its own, whose coordinator is
the next keeper: it takes over what the dead one had on its desk, since it stands by for the same nodes. If nobody
acts in time, whoever stands by moves the event to its own queue, provided that the node is still in its range.

Invariants, at the end of every round:
1. an open event is on the desk of at least one node that is there, in its queue or standing by; one that is on no desk
   is announced again by the node itself, if it is there, and otherwise counted as lost (more than L at once);
2. an event is on a desk once: in the queue, or standing by, not both;
3. a desk is kept exactly while there is something on it.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from grapevine.blocks.network import Network
from grapevine.blocks.views import NOBODY
from grapevine.systems.omen.churn import JOIN, LEAVE, Churn, ChurnEvent
from grapevine.systems.omen.local_views import LocalViews
from grapevine.systems.omen.mending import Mender
from grapevine.systems.omen.upkeep import Upkeep


@dataclass(slots=True)
class Desk:
    """What one node has to do: its own events in order of arrival, and those that it stands by for."""

    exe_q: list[ChurnEvent] = field(default_factory=list)
    standby: dict[ChurnEvent, tuple[int, int]] = field(default_factory=dict)  # → (deadline, coordinator)


class Desks:
    """The desks of all nodes of a network. The round driver calls it; `Mender` does the mending."""

    def __init__(
        self, network: Network, local: LocalViews, churn: Churn, mender: Mender, upkeep: Upkeep, timeout: int
    ) -> None:
        self._network, self._local, self._churn, self._mender = network, local, churn, mender
        self._upkeep, self._timeout = upkeep, timeout
        self.of: dict[int, Desk] = {}

    def ring_changed(self) -> None:
        """Somebody came or went, or what happened to somebody is handled. Whoever has become a successor of a node is
        told its neighbours: by the node itself, or, if it is gone, by another successor."""
        for subject in self._local.ring_changed(self._churn.on_the_ring()):
            if neighbours := self._mender.neighbours_of(subject):
                self._upkeep.count("handover", 1, len(neighbours))

    def announce(self, event: ChurnEvent) -> None:
        """Who notices the event tells the L successors of the node; those who live take note."""
        asked = self._local.keepers(event.node)
        reached = [node for node in asked if self._network.alive[node]]
        self._upkeep.count("join", int(event.kind == JOIN))
        self._upkeep.count("notify", max(len(reached) - 1, 0))
        for node in reached:
            self._handle_churn_event(node, event)
        if not asked and event.kind != LEAVE:  # alone in the network
            self._mender.settle(event, [])
            self._mender.close(event, event.node, 1, 0)

    def work(self) -> None:
        """One round at every desk, in the order of nodes; then events on no desk are announced again, or lost."""
        for node in sorted(self.of):
            self._process_standby(node)
            self._process_exe_q(node)
        self._drop_lost()

    def clear_of(self, node: int) -> None:
        """The node is gone, or came back with nothing: what was on its desk is only on those of others."""
        self.of.pop(node, None)

    def _handle_churn_event(self, node: int, event: ChurnEvent) -> None:
        desk = self.of.setdefault(node, Desk())
        if self._local.is_coordinator(node, event.node):
            if event.kind == LEAVE:
                unassigned = [other for other, (_, who) in desk.standby.items() if who == event.node]
                for other in unassigned:
                    del desk.standby[other]
                desk.exe_q += unassigned
            desk.exe_q.append(event)
        else:
            self._stand_by(desk, event)

    def _stand_by(self, desk: Desk, event: ChurnEvent) -> None:
        coordinator = next(iter(self._local.keepers(event.node)), NOBODY)
        desk.standby[event] = self._network.now + self._timeout, coordinator

    def _process_exe_q(self, node: int) -> None:
        """One by one, in the order of arrival; an event whose backup set is not ready holds up those behind it."""
        desk = self.of[node]
        while desk.exe_q:
            event = desk.exe_q[0]
            if not self._local.is_in_pred_range(node, event.node):
                self._stand_by(desk, desk.exe_q.pop(0))
            elif self._mender.is_ready(node, event.node):
                desk.exe_q.pop(0)
                self._mender.repair(node, event)
                self._notify_succ_range(event)
            else:
                break

    def _process_standby(self, node: int) -> None:
        """Whose time is up is handled here, if it still is in range; if not, it is the business of others."""
        desk = self.of[node]
        for event, (deadline, _) in list(desk.standby.items()):
            if deadline <= self._network.now:
                del desk.standby[event]
                if self._local.is_in_pred_range(node, event.node):
                    desk.exe_q.append(event)

    def _notify_succ_range(self, event: ChurnEvent) -> None:
        """Tell the L successors that it is done: they drop the event and what they kept for it (gcChurnEvent)."""
        for node in self._local.keepers(event.node):
            self._upkeep.count("done", 1)
            desk = self.of.get(node)
            if desk is not None:
                desk.standby.pop(event, None)
                desk.exe_q = [other for other in desk.exe_q if other is not event]
        self.ring_changed()

    def _drop_lost(self) -> None:
        """Events that nobody knows of any more: there were more than L at once."""
        known = {event for desk in self.of.values() for event in (*desk.exe_q, *desk.standby)}
        unknown = [event for event in self._churn.open if event not in known]
        for event in unknown:
            if self._network.alive[event.node] and event.kind != LEAVE:
                self.announce(event)  # the node itself asks again
            else:
                self._mender.close(event, None, 0, 0)
        if unknown:
            self.ring_changed()
        self.of = {node: desk for node, desk in self.of.items() if desk.exe_q or desk.standby}
