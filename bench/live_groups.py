"""Runs a live system as groups of nodes in a few processes on this machine, and measures it; which system is not known.

A group is a process that reads commands as lines of JSON and answers each with a line:

- open(workload, nodes, payload, settings): start these nodes, subscribed; answers their addresses, and the usage before
- connect(links): dial; answers what failed
- look(): usage, connections of every node, links of every node by topic, complaints
- publish(start, until): publish its events of the workload; at `until`, answers the usage before and after, what was
  received when (event, node, milliseconds since the publisher stamped the payload), and how late it published

`bench/gossipsub_peer.py` is one. Phases: the nodes open and connect; the links settle; nothing happens for a while,
which says what standing costs; events are published, and a fixed time is waited for the last of them. All times are
bounded, and no process is left behind.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import statistics
import sys
import time
from collections import Counter
from collections.abc import AsyncIterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from bench.live_workload import LiveWorkload

STEP_LIMIT = 300.0  # seconds that any command but publish may take
LINE = 1 << 27  # bytes that an answer may have


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    """What is run, and how long."""

    command: Sequence[str]  # starts a group
    groups: int = 2
    payload: int = 200
    settle_s: float = 60.0  # at most
    still_s: float = 6.0  # links that have not changed for so long have settled
    idle_s: float = 6.0
    drain_s: float = 10.0
    settings: dict[str, Any] = field(default_factory=dict)


class Groups:
    """The processes."""

    def __init__(self, processes: Sequence[asyncio.subprocess.Process]) -> None:
        self.processes = processes

    async def ask(self, commands: Sequence[dict[str, Any]], limit: float = STEP_LIMIT) -> list[dict[str, Any]]:
        """One command for every process, all at once, and their answers."""
        async with asyncio.timeout(limit):
            return await asyncio.gather(*map(self._ask, self.processes, commands))

    async def all(self, limit: float = STEP_LIMIT, **command: Any) -> list[dict[str, Any]]:
        """The same command for every process."""
        return await self.ask([command] * len(self.processes), limit)

    @staticmethod
    async def _ask(process: asyncio.subprocess.Process, command: dict[str, Any]) -> dict[str, Any]:
        assert process.stdin is not None
        assert process.stdout is not None
        process.stdin.write(json.dumps(command).encode() + b"\n")
        await process.stdin.drain()
        line = await process.stdout.readline()
        if not line:
            raise RuntimeError(f"a group ended at {command['do']!r}; its last words are above")
        answer: dict[str, Any] = json.loads(line)
        return answer


@contextlib.asynccontextmanager
async def started(plan: Plan) -> AsyncIterator[Groups]:
    """Processes that are gone afterwards, whatever happens."""
    processes: list[asyncio.subprocess.Process] = []
    try:
        pipe = asyncio.subprocess.PIPE
        for _ in range(plan.groups):
            process = await asyncio.create_subprocess_exec(*plan.command, stdin=pipe, stdout=pipe, limit=LINE)
            processes.append(process)
        yield Groups(processes)
    finally:
        for process in processes:
            if process.returncode is None:
                process.kill()
        await asyncio.gather(*(process.wait() for process in processes))


async def measure(plan: Plan, workload: LiveWorkload, path: Path, links: Sequence[tuple[int, int]]) -> dict[str, Any]:
    """The whole run; `links` says who dials whom, and the workload is read from `path` by the groups."""
    workload.write(path)
    group_of = [node % plan.groups for node in range(len(workload.nodes))]
    async with started(plan) as groups:
        opened = await groups.ask(
            [
                {
                    "do": "open",
                    "workload": str(path),
                    "nodes": [node for node, its in enumerate(group_of) if its == group],
                    "payload": plan.payload,
                    "settings": plan.settings,
                }
                for group in range(plan.groups)
            ]
        )
        addresses = {int(node): address for answer in opened for node, address in answer["addresses"].items()}
        began = time.time()
        dials: list[list[tuple[int, str]]] = [[] for _ in range(plan.groups)]
        for node, other in links:
            dials[group_of[node]].append((node, addresses[other]))
        connected = await groups.ask([{"do": "connect", "links": its} for its in dials])
        connect_s = time.time() - began
        settled_s, settled = await settle(groups, plan)
        await asyncio.sleep(plan.idle_s)
        rested = await groups.all(do="look")
        busy_s = workload.events[-1][0] + plan.drain_s
        start, machine = time.time() + 1, machine_s()
        published = await groups.all(do="publish", start=start, until=start + busy_s, limit=busy_s + STEP_LIMIT)
        machine = machine_s() - machine
        ended = await groups.all(do="look")

    subscribers = workload.subscribers()
    received = [tuple(delivery) for answer in published for delivery in answer["received"]]
    delays = sorted(delay for *_, delay in received)
    delivered = len({(event, node) for event, node, _ in received})
    idle = {key: spent(settled, rested, key) / plan.idle_s for key in ("sent", "cpu_s")}
    busy = {key: sum(answer["after"][key] - answer["before"][key] for answer in published) for key in ("sent", "cpu_s")}
    late = sorted(moment for answer in published for moment in answer["late_ms"])
    connections = [count for answer in ended for count in answer["connections"].values()]
    by_node = [its for answer in ended for its in answer["links"].values()]
    resident = sum(answer["usage"]["resident"] for answer in ended)
    bare = sum(answer["bare"]["resident"] for answer in opened)
    complaints: Counter[str] = Counter()
    for answer in ended:
        complaints.update(answer["complaints"])
    return {
        "system": opened[0]["version"],
        "cores": os.cpu_count(),
        "processes": plan.groups,
        "nodes": len(workload.nodes),
        "topics": len(subscribers),
        "subscriptions_per_node": statistics.mean(map(len, workload.nodes)),
        "subscribers_per_topic": statistics.mean(map(len, subscribers.values())),
        "events": len(workload.events),
        "events_per_s": (len(workload.events) - 1) / workload.events[-1][0],
        "payload_bytes": plan.payload,
        "settings": plan.settings,
        "dialled": len(links),
        "dials_failed": Counter(failure for answer in connected for failure in answer["failed"]),
        "connections_per_node": {"mean": statistics.mean(connections), "max": max(connections)},
        "sockets_per_node": sum(answer["usage"]["sockets"] for answer in ended) / len(workload.nodes),
        "links_per_node": statistics.mean(sum(its.values()) for its in by_node),
        "links_per_node_and_topic": statistics.mean(count for its in by_node for count in its.values()),
        "without_a_link": sum(  # subscriptions that others share
            not count and len(subscribers[int(topic)]) > 1 for its in by_node for topic, count in its.items()
        ),
        "shared_subscriptions": sum(len(those) for those in subscribers.values() if len(those) > 1),
        "expected": workload.expected(),
        "delivered": delivered,
        "duplicates": len(received) - delivered,
        "hit_ratio": delivered / workload.expected(),
        "delay_ms": {name: quantile(delays, share) for name, share in (("p50", 0.5), ("p99", 0.99), ("max", 1.0))},
        "published_late_ms": {name: quantile(late, share) for name, share in (("p50", 0.5), ("p99", 0.99))},
        "publications_failed": Counter(failure for answer in published for failure in answer["failed"]),
        "busy_s": busy_s,
        "idle_bytes_per_s_and_node": idle["sent"] / len(workload.nodes),
        "bytes_per_delivered": busy["sent"] / max(delivered, 1),
        "bytes_per_delivered_above_idle": (busy["sent"] - idle["sent"] * busy_s) / max(delivered, 1),
        "setup_bytes_per_node": sum(answer["usage"]["sent"] for answer in settled) / len(workload.nodes),
        "connect_s": connect_s,
        "settle_s": settled_s,
        "cpu_s": {
            "setup": sum(answer["usage"]["cpu_s"] for answer in settled),
            "idle_per_s": idle["cpu_s"],
            "busy": busy["cpu_s"],
            "busy_by_process": [answer["after"]["cpu_s"] - answer["before"]["cpu_s"] for answer in published],
            "others_on_this_machine": machine - busy["cpu_s"],
            "ms_per_delivered": busy["cpu_s"] / max(delivered, 1) * 1e3,
        },
        "resident_mib": {
            "per_node": resident / len(workload.nodes) / 2**20,
            "per_node_without_interpreter": (resident - bare) / len(workload.nodes) / 2**20,
        },
        "complaints": dict(complaints.most_common(12)),
    }


async def settle(groups: Groups, plan: Plan) -> tuple[float, list[dict[str, Any]]]:
    """Wait until the links rest, or for as long as the plan allows: how long it took, and the last look."""
    began = changed = time.time()
    last = await groups.all(do="look")
    while time.time() - changed < plan.still_s and time.time() - began < plan.settle_s:
        await asyncio.sleep(1)
        now = await groups.all(do="look")
        if any(a[key] != b[key] for a, b in zip(last, now, strict=True) for key in ("links", "connections")):
            changed = time.time()
        last = now
    return changed - began, last


def spent(before: list[dict[str, Any]], after: list[dict[str, Any]], key: str) -> float:
    """What all processes used between two looks."""
    return float(sum(b["usage"][key] - a["usage"][key] for a, b in zip(before, after, strict=True)))


def machine_s() -> float:
    """CPU seconds that everything on this machine has used."""
    user, nice, system, _, _, irq, softirq = map(int, Path("/proc/stat").read_text().split()[1:8])
    return (user + nice + system + irq + softirq) / os.sysconf("SC_CLK_TCK")


def quantile(ascending: Sequence[float], share: float) -> float | None:
    """The smallest value that so large a share does not exceed."""
    if not ascending:
        return None
    return ascending[max(0, min(len(ascending) - 1, round(share * len(ascending)) - 1))]


def show(result: dict[str, Any]) -> None:
    """Print as JSON."""
    json.dump(result, sys.stdout, indent=2)
    print()
