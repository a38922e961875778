"""One channel of the simulated network, seen from its two ends (`network` says how it behaves).

An end belongs to a process: everything that it calls runs in a context of it, so that nothing reaches the dead. Three
kinds of parcels travel from end to end, in order: bytes, the end of the stream (after `close`), and a reset (after
`abort`, or from a machine that knows of no such channel).
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable
from contextvars import Context
from enum import Enum

from grapevine.model.errors import PeerError
from grapevine.model.identity import PeerId
from grapevine.net.identity import Identity, proven
from grapevine.net.torture.loop import Process
from grapevine.net.torture.network import GIVE_UP_S, Network, Way
from grapevine.net.transport import Channel, ChannelUser

_NEXT_S = 1e-6  # between two parcels of one way, so that timers of one time cannot change their order


class Signal(Enum):
    """What travels beside bytes."""

    END = "end"  # nothing more comes
    RESET = "reset"  # and nothing of what came before counts


Parcel = bytes | Signal


class End(Channel):
    """One end of a channel."""

    other: End
    peer: PeerId

    def __init__(
        self, network: Network, host: str, process: Process, context: Context, user: ChannelUser | None
    ) -> None:
        self.host, self.process = host, process
        self._network, self._context, self._user = network, context, user
        self._held: deque[Parcel] = deque()  # written while the way was cut
        self._unread: deque[Parcel] = deque()  # arrived, and not handed over
        self._unsent = 0  # bytes that the other end's user has not been given
        self._last_arrival = 0.0  # of what was sent from here
        self._worry: asyncio.TimerHandle | None = None  # until then an acknowledgement has to come
        self._is_paused = self._is_closing = self._is_over = False
        network.ends[self] = None

    @property
    def way(self) -> Way:
        """From here to the other end."""
        return self.host, self.other.host

    def accept(self, make_user: Callable[[], ChannelUser], dialler: Identity) -> None:
        """The other end has dialled, and this one hears of it: open it, unless its process is dead by now."""
        if not self._is_over:
            self._user = make_user()
            self.begin(dialler, None)

    def begin(self, identity: Identity, expected: PeerId | None) -> None:
        """Let the other end prove that it has this identity; then the channel is open."""
        assert self._user is not None
        challenge = self._network.challenge()
        try:
            self.peer = proven(challenge, *identity.prove(challenge), expected)
        except PeerError as error:
            self._user.on_channel_refused(error)
            self.abort()
        else:
            self._user.on_channel_open(self)

    # What its user calls

    def write(self, data: bytes) -> None:
        if data and not self._is_closing:
            self._unsent += len(data)
            self._send(bytes(data))

    @property
    def unsent(self) -> int:
        return self._unsent

    @property
    def is_closing(self) -> bool:
        return self._is_closing

    def pause_reading(self) -> None:
        self._is_paused = True

    def resume_reading(self) -> None:
        self._is_paused = False
        self._soon(self._hand_over)

    def close(self) -> None:
        if not self._is_closing:
            self._is_closing = True
            self._unread.clear()
            self._send(Signal.END)
            if self._worry is None:
                self._worry = self._network.loop.call_later(GIVE_UP_S, self._give_up, context=self._context)

    def abort(self) -> None:
        if not self._is_over:
            self._is_closing = True
            self._held.clear()
            self._send(Signal.RESET)
            self._soon(self._end)

    # What the network calls

    def arrival_of_next(self) -> float:
        """When a parcel that leaves now is there: after all that left before."""
        soonest = self._network.loop.time() + self._network.latency_s(self.way)
        self._last_arrival = max(soonest, self._last_arrival + _NEXT_S)
        return self._last_arrival

    def on_ways_changed(self) -> None:
        """A way was cut or healed: what waited leaves, or somebody begins to worry."""
        network, there, back = self._network, self.way, self.other.way
        if self._held and not network.is_cut(there):
            self._last_arrival = max(self._last_arrival, network.loop.time() + network.retransmission_s(there))
            held, self._held = self._held, deque()
            for parcel in held:
                self._dispatch(parcel)
        if self._worry is not None and not self._is_closing and not network.is_cut(there) and not network.is_cut(back):
            self._worry.cancel()
            self._worry = None

    def break_off(self) -> None:
        """Something in between has reset the channel."""
        self._is_closing = True
        self._soon(self._end)

    def vanish(self, *, tell: bool) -> None:
        """Its process is dead: nothing is called any more. The other end is sent a reset, if it is told."""
        self._is_closing = self._is_over = True
        self._forget()
        if tell and not self._network.is_cut(self.way):
            self._dispatch(Signal.RESET)

    # Parcels

    def _send(self, parcel: Parcel) -> None:
        if self._is_over or self.process.is_dead:
            return
        network, there, back = self._network, self.way, self.other.way
        is_cut = network.is_cut(there)
        if is_cut or self._held:
            self._held.append(parcel)
        else:
            self._dispatch(parcel)
        if self._worry is None and (is_cut or network.is_cut(back) or self.other.host in network.down):
            self._worry = network.loop.call_later(GIVE_UP_S, self._give_up, context=self._context)

    def _dispatch(self, parcel: Parcel) -> None:
        other = self.other
        self._network.loop.call_at(self.arrival_of_next(), other._arrive, parcel, context=other._context)

    def _arrive(self, parcel: Parcel) -> None:
        if self._is_over:
            if parcel is not Signal.RESET:
                self._refuse()
            return
        size = len(parcel) if isinstance(parcel, bytes) else 0
        self._network.observe(self._network.loop.time(), self.other.host, self.host, size)
        if parcel is Signal.RESET:
            self._end()
        elif not self._is_closing or parcel is Signal.END:
            self._unread.append(parcel)
            self._hand_over()

    def _refuse(self) -> None:
        """Something came for a channel that is over here: the machine says so, if it is there and the way is open."""
        network, other = self._network, self.other
        is_heard = self.host not in network.down and not network.is_cut(self.way)
        if is_heard and not other._is_over:
            self._dispatch(Signal.RESET)

    def _hand_over(self) -> None:
        """Give the user what has come, until it pauses or closes; after the last, both ends are over."""
        while self._unread and not self._is_over:
            if self._unread[0] is Signal.END:
                self._end()
                self.other._soon(self.other._end)
                return
            if self._is_paused:
                return
            data = self._unread.popleft()
            assert isinstance(data, bytes) and self._user is not None
            self.other._unsent -= len(data)
            self._user.on_data(data)

    def _give_up(self) -> None:
        self._worry = None
        if not self._is_over:
            self._end()

    def _end(self) -> None:
        if self._is_over:
            return
        self._is_closing = self._is_over = True
        self._forget()
        if self._user is not None:
            self._user.on_channel_closed()

    def _forget(self) -> None:
        self._held.clear()
        self._unread.clear()
        self._unsent = 0
        self._network.ends.pop(self, None)
        if self._worry is not None:
            self._worry.cancel()
            self._worry = None

    def _soon(self, callback: Callable[[], None]) -> None:
        if not self.process.is_dead:
            self._network.loop.call_soon(callback, context=self._context)
