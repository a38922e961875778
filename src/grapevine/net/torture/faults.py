"""Does to machines and network what a schedule says, and undoes it when its time is over."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Callable, Coroutine, Sequence
from typing import Any

from grapevine.net.torture.machine import Machine
from grapevine.net.torture.network import Network, Way
from grapevine.net.torture.schedule import Fault
from grapevine.net.torture.transcript import Transcript

_SLOW_READER_S = 2.0  # for every event

Undo = Callable[[], None]


class Torturer:
    """One per run. `begin` is called at every fault's time, `end_all` when it is enough."""

    def __init__(self, machines: Sequence[Machine], network: Network, transcript: Transcript) -> None:
        self.counts: Counter[str] = Counter()  # of faults that had an effect, by kind
        self._machines, self._network, self._transcript = machines, network, transcript
        self._loop = asyncio.get_running_loop()
        self._pending: dict[Fault, asyncio.TimerHandle] = {}
        self._undo: dict[Fault, Undo] = {}
        self._tasks: set[asyncio.Task[None]] = set()
        self._is_over = False

    def begin(self, fault: Fault) -> None:
        """It happens now, unless it befalls nobody: a machine that is off cannot crash."""
        if self._is_over:
            return
        undo = self._do(fault)
        if undo is None:
            return
        self.counts[fault.kind] += 1
        self._transcript.say("fault", str(fault))
        self._undo[fault] = undo
        self._pending[fault] = self._loop.call_later(fault.for_s, self._end, fault)

    async def end_all(self) -> None:
        """Undo whatever goes on, and start whoever is down."""
        self._is_over = True
        for fault in list(self._undo):
            self._pending[fault].cancel()
            self._end(fault)
        for task in list(self._tasks):
            await task
        for machine in self._machines:
            machine.start()

    def _end(self, fault: Fault) -> None:
        undo = self._undo.pop(fault)
        del self._pending[fault]
        self._transcript.say("fault", f"over: {fault}")
        undo()

    def _do(self, fault: Fault) -> Undo | None:
        machine = self._machines[fault.nodes[0]]
        if fault.kind in ("crash", "power", "leave"):
            return self._take_down(fault, machine)
        if fault.kind in ("cut", "one-way", "slow-link", "lossy-link", "reset"):
            return self._disturb(fault)
        if fault.kind == "full-disk":
            return self._switch(machine.disk, "is_full", on=True, off=False)
        if fault.kind == "slow-disk":
            return self._switch(machine.disk, "is_slow", on=True, off=False)
        if fault.kind == "slow-readers":
            return self._switch(machine.pace, "pause_s", on=_SLOW_READER_S, off=0.0)
        if fault.kind == "interest":
            return self._change_interest(fault, machine)
        error_s, rate = (fault.amount, 0.0) if fault.kind == "clock-jump" else (0.0, fault.amount)
        machine.clock.set_error(error_s, rate)
        return _nothing  # clocks stay as they are

    def _take_down(self, fault: Fault, machine: Machine) -> Undo | None:
        if not machine.is_on:
            return None
        if fault.kind == "leave":
            self._run(machine.leave())
        else:
            machine.crash(power=fault.kind == "power")
        return machine.start

    def _disturb(self, fault: Fault) -> Undo | None:
        network, side = self._network, [self._machines[number].host for number in fault.nodes]
        if fault.kind == "reset":
            return _nothing if network.reset(*side) else None
        if fault.kind in ("slow-link", "lossy-link"):
            link: list[Way] = [(side[0], side[1]), (side[1], side[0])]
            if fault.kind == "lossy-link":
                network.lose(link)
                return lambda: network.lose_no_more(link)
            network.slow_down(link)
            return lambda: network.speed_up(link)
        others = [machine.host for machine in self._machines if machine.host not in side]
        ways = [(a, b) for a in side for b in others]
        if fault.kind == "cut":
            ways += [(b, a) for a, b in ways]
        network.cut(ways)
        return lambda: network.heal(ways)

    def _change_interest(self, fault: Fault, machine: Machine) -> Undo | None:
        topics = list(machine.readers)
        topic = topics[int(abs(fault.amount) * len(topics)) % len(topics)]
        if machine.node is None:
            return None
        self._run(machine.stop_reading(topic))
        return lambda: machine.read(topic)

    def _switch(self, owner: Any, name: str, *, on: Any, off: Any) -> Undo | None:
        if getattr(owner, name) == on:
            return None  # it is so already, by another fault
        setattr(owner, name, on)
        return lambda: setattr(owner, name, off)

    def _run(self, work: Coroutine[Any, Any, Any]) -> None:
        task = self._loop.create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)


def _nothing() -> None:
    return
