"""Dialling peers to whom there is something to say: messages wait, bounded in number, until the connection is there.

A peer that cannot be reached is left alone for `retry_s`: messages for it are dropped at once, and the host is told
each time, so that the overlay looks for others. A peer that comes back is dialled again after that, however often it
was sent to meanwhile.
"""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Awaitable, Callable

from grapevine.model.errors import PeerError
from grapevine.net.contacts import Contact
from grapevine.systems.contracts.peer import Address, Message

_MOST_PENDING = 64  # messages that wait for one peer
_AT_ONCE = 16  # dials
_MOST_BEGUN = 1_000  # dials that are under way, or wait for their turn
_MOST_UNREACHABLE = 10_000  # peers that are remembered as such


class Dialling:
    """Dials on behalf of `Connections`, which says how to find a peer and how to connect to it."""

    def __init__(
        self,
        retry_s: float,
        counts: Counter[str],
        *,
        locate: Callable[[Address], Awaitable[Contact | None]],
        connect: Callable[[Contact], Awaitable[object]],
        unreachable: Callable[[Address], None],
    ) -> None:
        self._loop = asyncio.get_running_loop()
        self._retry_s, self._counts = retry_s, counts
        self._locate, self._connect, self._unreachable = locate, connect, unreachable
        self._pending: dict[Address, list[Message]] = {}
        self._dials: dict[Address, asyncio.Task[None]] = {}
        self._not_before: dict[Address, float] = {}  # unreachable peers, and when they may be dialled again
        self._turns = asyncio.Semaphore(_AT_ONCE)
        self._is_closed = False

    def send(self, to: Address, message: Message) -> None:
        """Keep a message until there is a connection, and dial; it is dropped, and counted, if too much waits."""
        pending = self._pending.setdefault(to, [])
        if len(pending) >= _MOST_PENDING:
            self._counts["dropped_pending"] += 1
            return
        pending.append(message)
        if len(self._dials) >= _MOST_BEGUN:
            del self._pending[to]
            self._counts["dropped_pending"] += 1
        elif to not in self._dials and not self._is_closed:
            self._dials[to] = self._loop.create_task(self._dial(to))

    def on_open(self, address: Address) -> list[Message]:
        """A connection to this peer is open, whoever dialled: it is reachable, and this is what waited for it."""
        self._not_before.pop(address, None)
        return self._pending.pop(address, [])

    @property
    def pending(self) -> int:
        """Messages that wait for a connection."""
        return sum(map(len, self._pending.values()))

    def close(self) -> None:
        """End all dials, and begin no more. Nobody is told of peers that were not reached because of this."""
        self._is_closed = True
        for task in self._dials.values():
            task.cancel()

    async def _dial(self, to: Address) -> None:
        try:
            contact = await self._locate(to)
            if contact is None or self._not_before.get(to, 0.0) > self._loop.time():
                raise PeerError("nobody knows where it is, or it could not be reached a moment ago")
            async with self._turns:
                await self._connect(contact)
        except PeerError:
            self._dials.pop(to, None)
            self._fail(to)
        finally:
            self._dials.pop(to, None)

    def _fail(self, to: Address) -> None:
        self._counts["unreachable"] += 1
        self._counts["dropped_unreachable"] += len(self._pending.pop(to, []))
        now = self._loop.time()
        if self._not_before.get(to, 0.0) <= now:  # otherwise it was not tried: that must not put it off again
            self._not_before[to] = now + self._retry_s
        while len(self._not_before) > _MOST_UNREACHABLE:
            del self._not_before[next(iter(self._not_before))]
        if not self._is_closed:
            self._unreachable(to)
