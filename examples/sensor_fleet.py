"""Twelve sensors and two dashboards, each a live node with sockets of its own, in one process.

    python examples/sensor_fleet.py --readings 10 --every 0.3

Sensors publish readings in topics by region and kind, such as `north/temperature`. One dashboard wants the temperatures
of all regions, the other one everything from the north. On the way one sensor loses power, and meanwhile all sensors of
the north are adjusted. When it is back it is who it was, since its key is in its folder, and its neighbours tell it of
the adjustment. So what is missing in the end are the readings that it never took.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import time
from collections import defaultdict
from contextlib import AsyncExitStack, suppress
from pathlib import Path
from random import Random
from tempfile import TemporaryDirectory
from typing import Any

from grapevine.net import Event, Gap, Node, OrderedReader
from grapevine.net.run import stop_on_signals

REGIONS, KINDS = ("north", "south", "coast"), {"temperature": 12.0, "humidity": 60.0}  # and their usual values
SENSORS = [f"{region}/{kind}/{place}" for region in REGIONS for kind in KINDS for place in ("roof", "cellar")]
UNLUCKY, ADJUSTMENT = "north/temperature/cellar", 0.5
PATIENCE_S = 60.0  # for a way to others, and for the last events to arrive
# A network on one machine can afford to gossip, and to compare what it has, often.
SETTINGS: dict[str, Any] = {"parameters": {"round_s": 0.2}, "recover_every_s": 0.5, "durability": "process"}


class Sensor:
    """A sensor: `north/temperature/roof` publishes in `north/temperature`, and listens to `north/adjustments`."""

    def __init__(self, name: str, folder: Path) -> None:
        self.name, self.folder = name, folder / name.replace("/", "-")
        self.topic, self.region = name.rpartition("/")[0], name.partition("/")[0]
        self.offset = 0.0  # all adjustments together
        self.taken: list[int] = []  # numbers of its readings
        self.node: Node | None = None  # None: it has no power
        self._power = AsyncExitStack()

    async def switch_on(self, meeting: str, since: float, group: asyncio.TaskGroup) -> None:
        """Open its node, and heed all adjustments since this time, also those that it was not there for."""
        opening = Node.open(bootstrap=[meeting], data_dir=self.folder, **SETTINGS)
        self.node = await self._power.enter_async_context(opening)
        adjustments = self.node.subscribe(f"{self.region}/adjustments", since=since)
        group.create_task(self._heed(await self._power.enter_async_context(adjustments)))

    async def switch_off(self) -> None:
        """Close its node. What it has heard is forgotten, except for what is in its folder."""
        self.node = None
        await self._power.aclose()
        self.offset = 0.0

    async def _heed(self, adjustments: OrderedReader) -> None:
        async for event in adjustments:  # ends when the node is closed
            if isinstance(event, Event):  # a gap would be an adjustment that nobody has any more
                self.offset += float(event.payload)

    async def read(self, number: int) -> None:
        """Take a reading and publish it, unless there is no power."""
        if self.node is not None:
            usual = KINDS[self.topic.rpartition("/")[2]]
            value = usual + Random(f"{self.name} {number}").gauss(0, 1) + self.offset
            reading = {"sensor": self.name, "number": number, "value": value}
            await self.node.publish(self.topic, json.dumps(reading).encode(), timeout=PATIENCE_S)
            self.taken.append(number)


class Dashboard:
    """What somebody wants to see, and what has come of it."""

    def __init__(self, title: str, topics: list[str]) -> None:
        self.title, self.topics = title, topics
        self.seen: dict[str, dict[int, float]] = defaultdict(dict)  # by sensor and number

    async def watch(self, readings: OrderedReader) -> None:
        """Take note of a topic's readings as they come."""
        async for event in readings:
            if isinstance(event, Gap):
                continue  # the summary says what is missing
            reading = json.loads(event.payload)
            self.seen[reading["sensor"]][reading["number"]] = reading["value"]

    def lacks(self, sensor: Sensor) -> bool:
        """Whether this sensor took a reading that should be here, and is not yet."""
        return sensor.topic in self.topics and not set(sensor.taken) <= set(self.seen[sensor.name])

    def summary(self, sensors: list[Sensor], readings: int) -> str:
        """A table: how many readings of each sensor came, the last value, and the numbers of those that did not."""
        lines = [f"\n{self.title}", f"  {'sensor':26}{'readings':>8}{'last value':>12}   missing"]
        for name in (sensor.name for sensor in sensors if sensor.topic in self.topics):
            seen = self.seen[name]
            last = f"{seen[max(seen)]:.2f}" if seen else "none"
            missing = ", ".join(str(n) for n in range(1, readings + 1) if n not in seen) or "none"
            lines.append(f"  {name:26}{len(seen):>8}{last:>12}   {missing}")
        return "\n".join(lines)


class Fleet:
    """All sensors and dashboards of a run that takes so many readings, one in so many seconds."""

    def __init__(self, readings: int, every: float, folder: Path) -> None:
        self.readings, self.every = readings, every
        self.sensors = [Sensor(name, folder) for name in SENSORS]
        self.unlucky = next(sensor for sensor in self.sensors if sensor.name == UNLUCKY)
        self.temperatures = Dashboard("Temperatures", [f"{region}/temperature" for region in REGIONS])
        self.north = Dashboard("The north", [f"north/{kind}" for kind in KINDS])
        self.start = time.time()

    async def run(self) -> None:
        """Open everything, take the readings, wait for the last of them, and print what came."""
        stop_on_signals()
        async with asyncio.TaskGroup() as group, AsyncExitStack() as stack:
            first = await stack.enter_async_context(Node.open(**SETTINGS))
            meeting = "{}:{}".format(*first.endpoint)
            second = await stack.enter_async_context(Node.open(bootstrap=[meeting], **SETTINGS))
            for dashboard, node in ((self.temperatures, first), (self.north, second)):
                for topic in dashboard.topics:
                    group.create_task(dashboard.watch(await stack.enter_async_context(node.subscribe(topic))))
            for sensor in self.sensors:
                stack.push_async_callback(sensor.switch_off)
                await sensor.switch_on(meeting, self.start, group)
            print(f"{len(self.sensors)} sensors and 2 dashboards are there; they met at {meeting}", flush=True)
            await self.take_readings(meeting, second, group)
            await self.wait_for_the_last()
            self.report()

    async def take_readings(self, meeting: str, engineer: Node, group: asyncio.TaskGroup) -> None:
        """All sensors take all readings, except for the one that loses power for a third of them."""
        off, back = self.readings // 3 + 1, 2 * self.readings // 3 + 1
        for number in range(1, self.readings + 1):
            if number == off:
                await self.unlucky.switch_off()
                print(f"before reading {number}: {UNLUCKY} loses power", flush=True)
                await engineer.publish("north/adjustments", str(ADJUSTMENT).encode(), timeout=PATIENCE_S)
                print(f"before reading {number}: all sensors of the north are adjusted by {ADJUSTMENT:+}", flush=True)
            if number == back:
                await self.unlucky.switch_on(meeting, self.start, group)
                print(f"before reading {number}: {UNLUCKY} has power again", flush=True)
            await asyncio.gather(*(sensor.read(number) for sensor in self.sensors), asyncio.sleep(self.every))

    async def wait_for_the_last(self) -> None:
        """Return when everything that was published is where it is wanted, or patience ends."""
        with suppress(TimeoutError):
            async with asyncio.timeout(PATIENCE_S):
                while not self.unlucky.offset or any(
                    dashboard.lacks(sensor) for dashboard in (self.temperatures, self.north) for sensor in self.sensors
                ):
                    await asyncio.sleep(0.05)

    def report(self) -> None:
        """Print what came, and what did not."""
        for dashboard in (self.temperatures, self.north):
            print(dashboard.summary(self.sensors, self.readings))
        told = "was told of" if self.unlucky.offset == ADJUSTMENT else "never heard of"
        print(f"\n{UNLUCKY} {told} the adjustment that was made while it had no power")


def main() -> None:
    """Read the arguments, and run."""
    asked = argparse.ArgumentParser(description="Sensors and dashboards, each a node.")
    asked.add_argument("--readings", type=int, default=10, help="readings of each sensor")
    asked.add_argument("--every", type=float, default=0.3, help="seconds between two of them")
    given = asked.parse_args()
    if given.readings < 3:
        asked.error("--readings: give at least 3, so that a sensor can lose power and have it again")
    with TemporaryDirectory(prefix="fleet-") as folder, suppress(asyncio.CancelledError):  # Ctrl-C
        asyncio.run(Fleet(given.readings, given.every, Path(folder)).run())


if __name__ == "__main__":
    main()
