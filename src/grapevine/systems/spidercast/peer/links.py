"""Links that both ends agree on, though each writes its own end alone and messages are lost, doubled, late or cross.

Theory. In rounds a message writes both ends of a link (`blocks/connections`). Here a node **holds** a link in a task or
does not, and learns from messages what the other end does:

- `ConnectOk` and every `Heartbeat` say: I hold it. `DisconnectOk` and `Leave` say: I do not. What a heartbeat does not
  name, its sender does not hold. `Connect` and `Disconnect` ask for a change and change nothing at their sender.
- Who is told that the other end holds a link, and does not itself: takes it if it asked for it, waits for the answer
  and has room, else says `Leave`.
- Who is told that the other end does not hold a link: gives its own end up. A heartbeat counts for this only when the
  own end is older than `grace_s`, since it may have left before the other end could know.

So a message says what is, not what happened, and may be handled twice, late, or never. Of the four states of a link,
both ends hold it, or neither: each heartbeat confirms that. One end alone: its next heartbeat is answered, and after
that both or neither do. Nothing is numbered, and no answer is awaited for ever.

Invariants:
1. A node holds no more than L^max + Margin links in a task, whatever comes: `Links.add` is called where
   `consent.accepts` was asked, by both ends (`maintenance`). Who loses topics may be above it until it let links go.
2. When messages get through, ends that differ agree after one heartbeat of the end that holds the link, an answer, and
   `grace_s`; when some are lost, after the first heartbeat and answer that are not.
3. A neighbour that is gone, or that never answers, is dropped `silence_s` after its last sign that it holds the link.
4. A session begins with nothing: who is back before it was missed answers what its old neighbours say with `Leave`.
5. What overtakes something else may end a link that was made anew. Both ends then come to agree that there is none: it
   costs a link, never the agreement.
"""

from __future__ import annotations

from collections.abc import Iterable
from collections.abc import Set as AbstractSet

from grapevine.systems.contracts.peer import Address
from grapevine.systems.spidercast.peer.messages import TASKS, Standing

NOTHING = Standing(0, 0)  # of who has not told: as in rounds, a node without links


class Link:
    """This node's end of a link to a neighbour."""

    __slots__ = ("heard", "since", "standings")

    def __init__(self, now: float) -> None:
        self.heard = now  # when the other end last said that it holds the link, in any task
        self.since: dict[int, float] = {}  # by task in which this node holds it: since when
        self.standings = [NOTHING for _ in TASKS]  # of the other end, as it last told


class Links:
    """All links of a node. A node is a neighbour while it is held in one task or more."""

    def __init__(self, grace_s: float) -> None:
        self._grace_s = grace_s
        self._links: dict[Address, Link] = {}

    @property
    def neighbours(self) -> list[Address]:
        """In the order in which they came."""
        return list(self._links)

    @property
    def nodes(self) -> AbstractSet[Address]:
        """The same, as a set that follows every change."""
        return self._links.keys()

    def __contains__(self, node: object) -> bool:
        return node in self._links

    def of(self, task: int) -> list[Address]:
        """The neighbours in a task."""
        return [node for node, link in self._links.items() if task in link.since]

    def degree(self, task: int) -> int:
        """How many neighbours there are in a task."""
        return sum(task in link.since for link in self._links.values())

    def tasks_of(self, node: Address) -> tuple[int, ...]:
        """In which tasks a node is a neighbour; none if it is no neighbour."""
        link = self._links.get(node)
        return tuple(sorted(link.since)) if link else ()

    def standing(self, node: Address, task: int) -> Standing:
        """How a neighbour stands in a task, as it last told."""
        return self._links[node].standings[task]

    def age_s(self, node: Address, now: float) -> float:
        """For how long a node has been a neighbour."""
        return now - min(self._links[node].since.values())

    def add(self, now: float, node: Address, task: int, standing: Standing) -> None:
        """Hold a link from now on, or still: the other end said that it does, or asked for it."""
        link = self._links.setdefault(node, Link(now))
        link.since[task] = now
        self.hear(now, node, task, standing)

    def hear(self, now: float, node: Address, task: int, standing: Standing) -> None:
        """A neighbour said that it holds the link in a task, and how it stands."""
        link = self._links[node]
        link.heard, link.standings[task] = now, standing

    def remove(self, node: Address, task: int) -> bool:
        """Hold a link no more; False if it was not held."""
        link = self._links.get(node)
        if link is None or link.since.pop(task, None) is None:
            return False
        if not link.since:
            del self._links[node]
        return True

    def drop(self, node: Address) -> None:
        """Hold no link to a node any more; nothing happens if none was held."""
        self._links.pop(node, None)

    def compare(
        self, now: float, node: Address, tasks: Iterable[int], standings: tuple[Standing, ...]
    ) -> tuple[list[int], list[int]]:
        """A heartbeat named these tasks: note it, and say in which of them this node does not hold the link, and in
        which it holds one that is over. The caller draws the consequences."""
        named, link = set(tasks) & set(TASKS), self._links.get(node)
        held = link.since if link else {}
        for task in sorted(named & held.keys()):
            self.hear(now, node, task, standings[task])
        over = [task for task, since in held.items() if task not in named and now - since > self._grace_s]
        return sorted(named - held.keys()), over

    def silent(self, oldest: float) -> list[Address]:
        """Neighbours who have not said since this time that they hold the link."""
        return [node for node, link in self._links.items() if link.heard < oldest]
