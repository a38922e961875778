"""How peers behave: what they may send a second, and what happens to those who break the rules."""

from __future__ import annotations

import math
from collections import Counter, OrderedDict

from grapevine.model.identity import PeerId

# Points of misconduct; at BANNED a peer is shut out. What no correct peer ever sends bans at once.
BANNED = 100
GARBAGE = 100  # no frame, no message, or none that may come now
FORGED = 50  # an event, or a contact, that its owner did not sign
EXCESS = 25  # more subscriptions than anybody may have
SLOW = 25  # does not read
REFUSED = 10  # its own event, that a validator of ours rejects

_HALF_LIFE_S = 60.0  # of points
_REMEMBERED = 10_000


class TokenBucket:
    """Allows `rate` units a second, and as many at once. It never refuses: it says how long to wait."""

    def __init__(self, rate: float, now: float) -> None:
        self._rate, self._left, self._at = rate, rate, now

    def take(self, amount: float, now: float) -> float:
        """Take an amount, on credit if need be; how many seconds to wait until the debt is paid (0: none)."""
        self._left = min(self._rate, self._left + (now - self._at) * self._rate) - amount
        self._at = now
        return max(0.0, -self._left / self._rate)


class Conduct:
    """Points by peer, halved every minute, and who is shut out until when."""

    def __init__(self, ban_s: float) -> None:
        self.counts: Counter[str] = Counter()  # of every kind of misconduct
        self._ban_s = ban_s
        self._points: OrderedDict[PeerId, tuple[float, float]] = OrderedDict()  # and when they were counted
        self._banned: OrderedDict[PeerId, float] = OrderedDict()

    def blame(self, peer: PeerId, misconduct: str, points: int, now: float) -> bool:
        """Count a misdeed; True if the peer is shut out from now on, for `ban_s`."""
        self.counts[misconduct] += 1
        total = self.points(peer, now) + points
        self._points[peer] = total, now
        self._points.move_to_end(peer)
        if len(self._points) > _REMEMBERED:
            self._points.popitem(last=False)
        if total < BANNED:
            return False
        self._banned[peer] = now + self._ban_s
        if len(self._banned) > _REMEMBERED:
            self._banned.popitem(last=False)
        return True

    def points(self, peer: PeerId, now: float) -> float:
        """What is left of the points that the peer was given."""
        points, when = self._points.get(peer, (0.0, now))
        return points * math.exp2((when - now) / _HALF_LIFE_S)

    def is_banned(self, peer: PeerId, now: float) -> bool:
        """Whether the peer is shut out now. When its time is over it begins again without points."""
        until = self._banned.get(peer)
        if until is not None and until <= now:
            del self._banned[peer]
            self._points.pop(peer, None)
        return peer in self._banned
