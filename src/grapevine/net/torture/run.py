"""One seed: the network is built, tortured, left in peace, and judged."""

from __future__ import annotations

import asyncio
import contextlib
import gc
import logging
import shutil
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from grapevine.net.torture.faults import Torturer
from grapevine.net.torture.loop import VirtualLoop
from grapevine.net.torture.machine import PORT, Machine, World, host_of
from grapevine.net.torture.network import Network
from grapevine.net.torture.oracle import Oracle, Violation
from grapevine.net.torture.schedule import CALM_S, Fault, Plan, Settings, plan_of
from grapevine.net.torture.transcript import Transcript

_LOOK_S = 5.0  # between two looks whether everything has come everywhere
_QUIET_S = 10.0  # then, in which nothing may come twice
_BOOTSTRAP = 2  # nodes that the others know at first
_MEMORY = Path("/dev/shm")  # a disk in memory, where there is one  # noqa: S108

Change = Callable[[list[Machine]], None]


@dataclass(frozen=True, slots=True)
class Outcome:
    """What came of a seed."""

    seed: int
    faults: tuple[Fault, ...]  # those of the schedule that were not left out
    violations: tuple[Violation, ...]
    digest: str
    transcript: tuple[str, ...]
    counts: Counter[str]  # published, acknowledged, refused, read, recovered, reported, parcels, and faults by kind
    virtual_node_s: float  # that nodes were up
    cpu_s: float

    @property
    def is_sound(self) -> bool:
        """Whether all promises were kept."""
        return not self.violations


def run_seed(
    seed: int, settings: Settings, *, faults: Sequence[Fault] | None = None, change: Change | None = None
) -> Outcome:
    """Run a seed. `faults`, if given, are those of its schedule that are not left out; `change` breaks something.

    `change` is called with the machines before any is started. It is for tests, which see whether the oracle notices.
    """
    begun = time.process_time()
    plan = plan_of(seed, settings)
    chosen = plan.faults if faults is None else tuple(faults)
    with _without_collector(), _scratch() as folder, _mistakes_told() as mistakes:
        loop = VirtualLoop(mistakes)
        try:
            run = _Run(seed, settings, plan, chosen, folder, loop)
            counts, virtual_node_s = loop.run_until_complete(run.play(change))
        finally:
            loop.close()
    return Outcome(
        seed,
        chosen,
        tuple(run.oracle.violations),
        run.transcript.digest(),
        tuple(run.transcript.lines),
        counts,
        virtual_node_s,
        time.process_time() - begun,
    )


class _Run:
    """The state of one run. Made outside the loop; `play` is everything."""

    def __init__(
        self, seed: int, settings: Settings, plan: Plan, faults: tuple[Fault, ...], folder: Path, loop: VirtualLoop
    ) -> None:
        self.oracle, self.transcript = Oracle(), Transcript(loop.time)
        self._seed, self._settings, self._plan, self._faults = seed, settings, plan, faults
        self._folder, self._loop = folder, loop
        self._machines: list[Machine] = []

    async def play(self, change: Change | None) -> tuple[Counter[str], float]:
        """Everything, from the first start to the judgement: counts, and virtual seconds that nodes were up."""
        network = Network(self._seed, self.transcript.on_parcel)
        world = World(
            seed=self._seed,
            loop=self._loop,
            network=network,
            oracle=self.oracle,
            transcript=self.transcript,
            folder=self._folder,
            bootstrap=tuple(f"{host_of(number)}:{PORT}" for number in range(_BOOTSTRAP)),
            parameters=self._plan.parameters,
            settings=self._plan.node_settings,
        )
        plan = self._plan
        self.transcript.say("", f"settings {plan.node_settings}, overlay {plan.parameters}")
        self._machines = [
            Machine(world, number, wanted, live)
            for number, (wanted, live) in enumerate(zip(plan.interests, plan.live, strict=True))
        ]
        if change is not None:
            change(self._machines)
        torturer = Torturer(self._machines, network, self.transcript)
        for at_s, machine in zip(plan.joins, self._machines, strict=True):
            self._loop.call_at(at_s, machine.start)
        for publication in plan.publications:
            self._loop.call_at(publication.at_s, self._machines[publication.node].publish, publication)
        for fault in self._faults:
            self._loop.call_at(fault.at_s, torturer.begin, fault)
        await asyncio.sleep(CALM_S + 60 * self._settings.minutes)
        await torturer.end_all()
        healed_s = await self._heal()
        return await self._judge(torturer.counts, healed_s)

    async def _heal(self) -> float:
        """Wait until all is well, as long as the settings allow; how long that took."""
        begun = self._loop.time()
        self.transcript.say("", "no more faults")
        while self._loop.time() - begun < self._settings.heal_s:
            await asyncio.sleep(_LOOK_S)
            is_up = all(machine.node is not None for machine in self._machines)
            if is_up and not self.oracle.missing(self._up()) and not await self._behind():
                break
        took = self._loop.time() - begun
        await asyncio.sleep(_QUIET_S)
        return took

    def _up(self) -> set[str]:
        return {machine.name for machine in self._machines if machine.node is not None}

    async def _behind(self) -> list[str]:
        return [sentence for machine in self._machines for sentence in await machine.behind()]

    async def _judge(self, faults: Counter[str], healed_s: float) -> tuple[Counter[str], float]:
        totals = {machine.name: machine.all_totals() for machine in self._machines}
        reported = self.oracle.judge(self._up())
        for machine in self._machines:
            if machine.node is None:
                self.oracle.blame("sound", f"{machine.name} is not up at the end")
        for sentence in await self._behind():
            self.oracle.blame("complete", sentence)
        await asyncio.gather(*(machine.leave() for machine in self._machines))
        for machine in self._machines:
            machine.crash(power=False)  # whoever did not leave
        for error in self._loop.errors:
            self.oracle.blame("sound", error)
        for violation in self.oracle.violations:
            self.transcript.say("oracle", str(violation))
        counts = self.oracle.counts + Counter({f"fault {kind}": number for kind, number in faults.items()})
        for name in ("recovered", "given_up"):
            counts[name] = sum(total[name] for total in totals.values())
        counts["reported"], counts["healed_s"], counts["parcels"] = reported, round(healed_s), self.transcript.parcels
        return counts, sum(machine.up_s for machine in self._machines)


@contextlib.contextmanager
def _scratch() -> Iterator[Path]:
    """A folder for the machines' disks."""
    where = _MEMORY if _MEMORY.is_dir() else None
    folder = Path(tempfile.mkdtemp(prefix="grapevine-torture-", dir=where))
    try:
        yield folder
    finally:
        shutil.rmtree(folder, ignore_errors=True)


class _Mistakes(logging.Handler):
    """Notes what was logged with an exception: a mistake of ours that the node has survived."""

    def __init__(self, noted: list[str]) -> None:
        super().__init__(logging.ERROR)
        self._noted = noted

    def emit(self, record: logging.LogRecord) -> None:
        if record.exc_info and record.exc_info[1] is not None:
            self._noted.append(f"{record.getMessage()}: {record.exc_info[1]!r}")


@contextlib.contextmanager
def _mistakes_told() -> Iterator[list[str]]:
    """Nodes log nothing meanwhile: full disks and lost peers are no news. Their mistakes are in the list."""
    noted: list[str] = []
    handler, log = _Mistakes(noted), logging.getLogger("grapevine.net")
    before = log.level, log.propagate
    log.addHandler(handler)
    log.propagate = False
    log.setLevel(logging.ERROR)
    try:
        yield noted
    finally:
        log.removeHandler(handler)
        log.level, log.propagate = before


@contextlib.contextmanager
def _without_collector() -> Iterator[None]:
    """Garbage is collected between runs: what a collection ends, and when, follows from no seed."""
    gc.collect()
    was_enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was_enabled:
            gc.enable()
