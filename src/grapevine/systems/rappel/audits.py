"""How a node comes to better friends (§3.4): it looks at one candidate after the other, the most often named first.

An audit asks the candidate for its profile; if the friends would be worth more with it, the candidate is asked whether
this node may be its fan, and becomes a friend when it says yes. At most one candidate is audited at a time; one that
has not answered by the next audit is forgotten.
"""

from __future__ import annotations

from grapevine.systems.contracts.peer import Address
from grapevine.systems.rappel import bloom
from grapevine.systems.rappel.bootstrap import Bootstrap
from grapevine.systems.rappel.friends import Friendship, Known
from grapevine.systems.rappel.messages import FriendReply, FriendRequest, Profile, WhoAreYou
from grapevine.systems.rappel.node import Node


class Audits:
    """Audits by one node, and its answers to those of others."""

    def __init__(self, node: Node, friendship: Friendship, bootstrap: Bootstrap) -> None:
        self._node, self._friendship, self._bootstrap = node, friendship, bootstrap
        self._audited: Address | None = None  # who was asked for its profile, or to be a friend
        self._repeats = 0  # audits in this period after refusals

    def on_audit_timer(self, now: float) -> None:
        """The next audit is due, and the one after that; whoever has not answered since the last is forgotten."""
        if self._audited is not None:
            self._friendship.forget(self._audited)  # it has not answered since the last audit
            self._audited = None
        self._repeats = 0
        self.audit()
        self._node.out.timer("audit", self._bootstrap.audit_s)

    def audit(self) -> None:
        """Look at the unaudited candidate with most votes, if there is one."""
        node = self._friendship.next_candidate()
        if node is None:
            return
        self._audited = node
        known = self._friendship.candidates[node].known
        if known is None:
            self._node.out.send(node, WhoAreYou())
        else:
            self._consider(node, known)

    def _consider(self, node: Address, known: Known) -> None:
        welcome, _ = self._friendship.victim(known)
        if welcome:
            self._node.out.send(node, FriendRequest(self._node.mine.version))
        else:
            self._audited = None

    def on_who_are_you(self, now: float, sender: Address, message: WhoAreYou) -> None:
        """Somebody asks for this node's profile; it gets one as soon as the node knows its position."""
        mine = self._node.mine
        if mine.position:
            self._node.out.send(sender, Profile(mine.version, bloom.to_bytes(mine.bloom), mine.position))

    def on_profile(self, now: float, sender: Address, message: Profile) -> None:
        """A friend's new profile, a sign of life of an old friend (§5.3), or what an audit waits for."""
        known, friendship = Known.of(message), self._friendship
        if sender in friendship.friends:
            friendship.friends[sender] = known
        elif self._bootstrap.answers_probe(sender):
            friendship.hear_of((sender,))
            friendship.candidates[sender].known = known
            self._audited = sender
            self._consider(sender, known)
        elif sender in friendship.candidates:
            friendship.candidates[sender].known = known
            if sender == self._audited:
                self._consider(sender, known)

    def on_friend_request(self, now: float, sender: Address, message: FriendRequest) -> None:
        """Somebody wants to be a fan: yes, if there is room for one and this node knows its position."""
        self._friendship.drop_silent_fans(now - self._node.config.silence_s)
        accepted = bool(self._node.position) and self._friendship.accept_fan(sender, now)
        friends = tuple(self._friendship.friends)
        self._node.out.send(sender, FriendReply(accepted, self._node.mine.version, friends))

    def on_friend_reply(self, now: float, sender: Address, message: FriendReply) -> None:
        """A new friend, if it is still welcome; after a refusal the next candidate, while there are too few friends."""
        friendship = self._friendship
        if sender == self._audited:
            self._audited = None
        candidate = friendship.candidates.get(sender)
        friendship.hear_of(message.friends)
        if message.accepted and candidate is not None and candidate.known is not None:
            welcome, victim = friendship.victim(candidate.known)
            if welcome:
                friendship.befriend(sender, candidate.known, victim)
                if self._bootstrap.is_joining:
                    self._bootstrap.join_covered()
        elif not message.accepted and not friendship.is_full and self._repeats < self._node.config.friends:
            self._repeats += 1
            self.audit()
