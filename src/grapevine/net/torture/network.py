"""The network between machines: latency, loss, cuts (also one-way), slow links, resets, machines that vanish.

It behaves as TCP over a bad network does, as far as two programs can tell:

- Bytes come in order, or not at all. What is written while the way is cut waits, and leaves when the cut is healed.
- What is lost is sent again, after a time-out that doubles each time; what was sent after it waits for it. So loss and
  reordering of packets are, to programs, latency that comes in jumps; what two channels carry overtakes each other.
- An end that hears no acknowledgement for `GIVE_UP_S` takes the channel for dead. Acknowledgements travel the other
  way, so a one-way cut ends channels too, at the end whose acknowledgements are cut off.
- The other end of a channel that died so is not told. It finds out when it writes: by a reset if the way is open,
  otherwise by giving up in turn.
- When a process dies, its machine resets its channels; when a machine loses power, nobody does.
- Dialling needs both ways. It fails at once where nobody listens, and waits in vain where the machine is off.

Latency is drawn per way, from generators that depend on the seed and the two hosts alone: what is left out of a
schedule elsewhere changes nothing here.
"""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Callable, Iterable
from random import Random
from typing import Protocol

from grapevine.net.torture.loop import Process
from grapevine.net.transport import Endpoint

GIVE_UP_S = 20.0  # without an acknowledgement; Linux takes longer by default, and is usually told not to
_RETRANSMITTED_S = 1.0  # at most, after a cut was healed
_LOSS = 0.3  # of parcels, on a lossy way
_TIMEOUT_S = 0.2  # until what was lost is sent again, the first time

Way = tuple[str, str]  # from host, to host


class OpenEnd(Protocol):
    """What the network knows of one end of a channel (`channel.End`)."""

    host: str
    process: Process

    @property
    def way(self) -> Way:
        """From here to the other end."""

    def on_ways_changed(self) -> None:
        """A way was cut or healed, perhaps this one."""

    def break_off(self) -> None:
        """Something in between has reset the channel."""

    def vanish(self, *, tell: bool) -> None:
        """Its process is dead; `tell`: the other end is sent a reset."""


class Bound(Protocol):
    """What the network knows of who listens (`simulated_transport.SimulatedListener`)."""

    process: Process


class Network:
    """All hosts, and what lies between them. `observe` is told of everything that arrives: when, where, how much."""

    def __init__(self, seed: int, observe: Callable[[float, str, str, int], None]) -> None:
        self.loop = asyncio.get_running_loop()
        self.observe = observe
        self.listeners: dict[Endpoint, Bound] = {}
        self.ends: dict[OpenEnd, None] = {}  # those that are open, in order
        self.down: set[str] = set()  # hosts without power
        self._seed = seed
        self._cuts: Counter[Way] = Counter()  # how many faults cut a way
        self._slow: Counter[Way] = Counter()  # likewise
        self._lossy: Counter[Way] = Counter()  # likewise
        self._draws: dict[Way, tuple[Random, float]] = {}  # and the least latency of the way
        self._challenges, self._ports = 0, 49_151

    def challenge(self) -> bytes:
        """Bytes that nobody in this network has signed before."""
        self._challenges += 1
        return b"%d" % self._challenges

    def free_port(self) -> int:
        """A port that nobody was given before."""
        self._ports += 1
        return self._ports

    # What the schedule does

    def cut(self, ways: Iterable[Way]) -> None:
        """Nothing passes these ways until as many calls of `heal`."""
        self._cuts.update(ways)
        for end in list(self.ends):
            end.on_ways_changed()

    def heal(self, ways: Iterable[Way]) -> None:
        """Take back a `cut`: what waited leaves now."""
        self._cuts -= Counter(ways)  # drops what is 0
        for end in list(self.ends):
            end.on_ways_changed()

    def slow_down(self, ways: Iterable[Way]) -> None:
        """What is written from now on takes seconds on these ways."""
        self._slow.update(ways)

    def speed_up(self, ways: Iterable[Way]) -> None:
        """Take back a `slow_down`."""
        self._slow -= Counter(ways)

    def lose(self, ways: Iterable[Way]) -> None:
        """Some of what is written from now on is lost on these ways, and sent again."""
        self._lossy.update(ways)

    def lose_no_more(self, ways: Iterable[Way]) -> None:
        """Take back a `lose`."""
        self._lossy -= Counter(ways)

    def reset(self, a: str, b: str) -> int:
        """Break all channels between two hosts; both ends are told. How many there were."""
        broken = [end for end in self.ends if end.way in ((a, b), (b, a))]
        for end in broken:
            end.break_off()
        return len(broken) // 2

    def on_crash(self, host: str, process: Process, *, power: bool) -> None:
        """A process has died. Its machine tells the other ends, unless it has lost power."""
        for endpoint in [at for at, listener in self.listeners.items() if listener.process is process]:
            del self.listeners[endpoint]
        if power:
            self.down.add(host)
        for end in [end for end in self.ends if end.process is process]:
            end.vanish(tell=not power)

    # What ends ask

    def is_cut(self, way: Way) -> bool:
        """Whether nothing passes now."""
        return way in self._cuts

    def latency_s(self, way: Way) -> float:
        """How long what leaves now takes."""
        random, least = self._draws.get(way) or self._first_draw(way)
        seconds = least + random.expovariate(1 / (0.2 * least))
        if way in self._slow:
            seconds += random.uniform(0.5, 5.0)
        if way in self._lossy:
            timeout_s = _TIMEOUT_S
            while random.random() < _LOSS:
                seconds, timeout_s = seconds + timeout_s, 2 * timeout_s
        return seconds

    def retransmission_s(self, way: Way) -> float:
        """How long it takes after a cut until a system tries again."""
        random, _ = self._draws.get(way) or self._first_draw(way)
        return random.uniform(0, _RETRANSMITTED_S)

    def _first_draw(self, way: Way) -> tuple[Random, float]:
        random = Random(f"latency {self._seed} {way[0]} {way[1]}")
        self._draws[way] = random, random.choice((0.0005, 0.005, 0.02, 0.05, 0.12))
        return self._draws[way]
