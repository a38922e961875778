"""How events spread: every new one goes to all neighbours that want its topic, the one it came from aside.

Who decides with whom a topic's events are exchanged is `partners`; whatever sends along fewer of these links can take
the place of `on_event` and nothing else.
"""

from __future__ import annotations

from collections.abc import Iterator

from grapevine.systems.contracts.peer import Address
from grapevine.systems.gossip.interests import Interests
from grapevine.systems.gossip.window import Windows
from grapevine.systems.spidercast.peer.links import Links
from grapevine.systems.spidercast.peer.messages import Notify
from grapevine.systems.spidercast.peer.view import View


class Flooding:
    """The events of one node; links, view and interests are read, never changed."""

    def __init__(self, links: Links, view: View, interests: Interests, seen: Windows) -> None:
        self._links, self._view, self._interests, self.seen = links, view, interests, seen

    def partners(self, topic: int) -> list[Address]:
        """Neighbours that want a topic which this node wants or publishes in, as far as is known."""
        if topic not in self._interests.topics:
            return []
        return [node for node in self._links.neighbours if self._view.profiles.wants(node, topic)]

    def is_new(self, event: Notify) -> bool:
        """Note an event that came, or is published here; False if there was nothing to note, or it came before."""
        is_ours = event.is_sound() and event.topic in self._interests.topics
        return is_ours and self.seen.add(event.publisher, event.topic, event.sequence)

    def on_event(self, event: Notify, sender: Address | None) -> Iterator[Address]:
        """To whom a new event goes; it came from `sender`, or from here if that is None."""
        return (node for node in self.partners(event.topic) if node != sender)
