"""What a light installation costs beside one with everything: CPU of imports and commands, memory of nodes.

    .venv/bin/python -m bench.light

The light one is made for this: a wheel of this tree, with what it requires and nothing else, in a new environment (uv
fetches the packages). The other is the environment that runs this. Both are measured the same way, in turns; CPU is
the user and system time of a process that does one thing, the least of some repetitions, when its modules have been
compiled to bytecode. Memory is what Linux counts as resident, and how much of that no other process can share.
"""

from __future__ import annotations

import json
import os
import re
import resource
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple

REPETITIONS = 3
FURTHER = 10  # nodes beside the first
PATIENCE_S = 300.0
ROOT = Path(__file__).resolve().parents[1]

IMPORTED = "from grapevine.net import Node"
NODES = f"""
import asyncio, json
from contextlib import AsyncExitStack
from grapevine.net import Node

def memory():
    lines = open("/proc/self/status").read().splitlines()
    sizes = {{line.split(":")[0]: line.split()[1] for line in lines if line.startswith(("VmRSS", "RssAnon"))}}
    return int(sizes["VmRSS"]) / 1024, int(sizes["RssAnon"]) / 1024

async def main():
    async with AsyncExitStack() as stack:
        first = await stack.enter_async_context(Node.open("127.0.0.1:0"))
        await asyncio.sleep(1)
        one = memory()
        host, port = first.endpoint
        for _ in range({FURTHER}):
            await stack.enter_async_context(Node.open("127.0.0.1:0", [f"{{host}}:{{port}}"]))
        await asyncio.sleep(5)
        print(json.dumps([*one, (memory()[0] - one[0]) / {FURTHER}]))

asyncio.run(main())
"""


class Figures(NamedTuple):
    """What one installation costs."""

    disk_mb: float
    import_s: float
    help_s: float
    publish_s: float
    node_mb: float  # a program with one node
    private_mb: float  # of this, what it shares with nobody
    further_mb: float  # a node more in the same program, with connections to the others
    command_mb: float  # `grapevine node`: with its control server


LABELS = (
    "on disk, MB",
    "`from grapevine.net import Node`, CPU s",
    "`grapevine --help`, CPU s",
    "`grapevine publish`, CPU s",
    "a program with one node, MiB",
    "of these private, MiB",
    "each further node in it, MiB",
    "`grapevine node`, MiB",
)
GOALS = ("", "≤ 0.25", "≤ 0.4", "≤ 0.5", "≤ 40", "", "≤ 3", "")


class Installation:
    """An interpreter, with the folder of our sources where they are not installed."""

    def __init__(self, python: str, sources: Path | None = None) -> None:
        self._python = python
        others = {name: value for name, value in os.environ.items() if name not in ("PYTHONPATH", "VIRTUAL_ENV")}
        self._environment = others | ({} if sources is None else {"PYTHONPATH": str(sources)})

    def run(self, *arguments: str) -> str:
        """What a process prints; the benchmark ends if it fails."""
        done = subprocess.run(
            [self._python, *arguments],
            capture_output=True,
            text=True,
            timeout=PATIENCE_S,
            env=self._environment,
            check=False,
        )
        if done.returncode:
            raise SystemExit(f"{' '.join(arguments)[:80]} failed: {done.stderr}")
        return done.stdout

    def cpu_s(self, *arguments: str) -> float:
        """The CPU time of such a process."""
        before = resource.getrusage(resource.RUSAGE_CHILDREN)
        self.run(*arguments)
        after = resource.getrusage(resource.RUSAGE_CHILDREN)
        return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime

    @contextmanager
    def node(self, folder: Path, *options: str) -> Iterator[tuple[int, str]]:
        """A `grapevine node` that has started, as a process: its number, and where it listens."""
        command = [self._python, "-m", "grapevine", "node", "--json", "--data-dir", str(folder), *options]
        with subprocess.Popen(
            command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True, env=self._environment
        ) as process:
            assert process.stdout
            lines = []
            while not lines or lines[-1] != "}\n":
                lines.append(process.stdout.readline())
                if not lines[-1]:
                    raise SystemExit("grapevine node did not start")
            try:
                yield process.pid, json.loads("".join(lines))["endpoint"]
            finally:
                process.terminate()

    def size_mb(self) -> float:
        """The files of all installed packages."""
        packages = self.run("-c", "import sysconfig; print(sysconfig.get_path('purelib'))").strip()
        return sum(file.stat().st_size for file in Path(packages).rglob("*") if file.is_file()) / 1e6

    def measure(self, scratch: Path) -> Figures:
        """Everything, once."""
        one, private, further = json.loads(self.run("-c", NODES))
        topic = ["--subscribe", "weather"]
        with (
            self.node(scratch / "one", *topic) as (number, at),
            self.node(scratch / "other", *topic, "--join", at),
        ):
            published = self.cpu_s("-m", "grapevine", "publish", "weather", "3 degrees", "--node", str(scratch / "one"))
            resident = re.search(r"VmRSS:\s+(\d+)", Path(f"/proc/{number}/status").read_text())
            assert resident
        return Figures(
            disk_mb=self.size_mb(),
            import_s=self.cpu_s("-c", IMPORTED),
            help_s=self.cpu_s("-m", "grapevine", "--help"),
            publish_s=published,
            node_mb=one,
            private_mb=private,
            further_mb=further,
            command_mb=int(resident[1]) / 1024,
        )


def make_light(folder: Path) -> Installation:
    """A new environment with a wheel of this tree and what it requires."""
    here = Installation(sys.executable)
    here.run("-m", "uv", "build", "--quiet", "--wheel", "--out-dir", str(folder / "dist"), str(ROOT))
    here.run("-m", "uv", "venv", "--quiet", "--python", sys.executable, str(folder / "light"))
    (wheel,) = (folder / "dist").glob("*.whl")
    python = str(folder / "light" / "bin" / "python")
    here.run("-m", "uv", "pip", "install", "--quiet", "--compile-bytecode", "--python", python, str(wheel))
    return Installation(python)


def main() -> None:
    with tempfile.TemporaryDirectory() as scratch:
        folder = Path(scratch)
        sides = {"light": make_light(folder), "everything": Installation(sys.executable, ROOT / "src")}
        best: dict[str, Figures] = {}
        for repetition in range(REPETITIONS):
            for name, installation in sides.items():
                found = installation.measure(folder / f"{name}-{repetition}")
                best[name] = Figures(*map(min, found, best.get(name, found)))
    print(f"| least of {REPETITIONS} | light | with everything | goal |\n|---|---|---|---|")
    for label, light, everything, goal in zip(LABELS, best["light"], best["everything"], GOALS, strict=True):
        print(f"| {label} | {light:.3g} | {everything:.4g} | {goal} |")


if __name__ == "__main__":
    main()
