"""How a node leaves a feed's tree in good order (proper leave, §4.4).

A feed goes through three states: in the tree → leaving (children are still served) → out of the tree. In the last one
it is kept a little longer, because neighbours that missed the farewell still send: what they send is swallowed until
they must have noticed the silence. Then the feed is closed (`RappelPeer`, the timer "drained").
"""

from __future__ import annotations

from grapevine.systems.rappel.feed import Feed
from grapevine.systems.rappel.messages import Adopt, ChangeParent, LeaveTree
from grapevine.systems.rappel.node import Node


class Leaving:
    """How one node leaves feeds, one by one or all of them."""

    def __init__(self, node: Node) -> None:
        self._node = node

    def begin(self, now: float, feed: Feed) -> None:
        """Hand the children on and serve them until they have other parents; a second call changes nothing.

        The child closest to the publisher goes to this node's parent, the others to that child.
        """
        if feed.leaving:
            return
        feed.leaving, feed.search = True, None
        if not feed.children or feed.publisher_position is None:
            self.finish(now, feed)
            return
        out = self._node.out
        heir = min(feed.children, key=lambda child: feed.rank(child, feed.children[child].position))
        for child in feed.children:
            if child != heir:
                out.send(child, ChangeParent(feed.topic, heir, leaving=True))
        if feed.parent is not None:
            known = feed.children[heir]
            out.send(feed.parent.node, Adopt(feed.topic, heir, known.position, known.session))
        else:
            out.send(heir, ChangeParent(feed.topic, feed.publisher, leaving=True))
        out.timer(("leave", feed.topic), self._node.config.leave_s)

    def finish(self, now: float, feed: Feed) -> None:
        """All children have gone, or had their time: out of the tree. A second call changes nothing."""
        if feed.drained_at is not None:
            return
        if feed.parent is not None:
            self._node.out.send(feed.parent.node, LeaveTree(feed.topic))
        drained_s = 2 * self._node.config.silence_s
        feed.parent, feed.drained_at = None, now + drained_s
        feed.children.clear()
        self._node.out.timer(("drained", feed.topic), drained_s)
