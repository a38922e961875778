"""A chat in the terminal without a server: everybody in a room is a node of its own.

    python examples/chat.py --room tea --name ann --listen 127.0.0.1:7000
    python examples/chat.py --room tea --name bob --join 127.0.0.1:7000       # in another terminal

What you type goes to all others in the room; Ctrl-D or Ctrl-C leaves. Whoever comes later is told what was said in the
last ten minutes, by those who heard it. Anybody can call himself ann; the four letters after a name belong to the key
that signed the line, and cannot be borrowed.
"""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import threading
import time
from collections.abc import AsyncIterator

from grapevine import UsageError
from grapevine.net import Event, Gap, Node, NoPath, OrderedReader
from grapevine.net.run import stop_on_signals

HISTORY_S = 600.0
PATIENCE_S = 2.0  # for a way to others, before the line waits for them in the background


async def chat(room: str, name: str, listen: str, join: list[str]) -> None:
    """Be in the room until the input ends, or Ctrl-C."""
    stop_on_signals()
    async with Node.open(listen, join, network="chat") as node:
        host, port = node.endpoint
        print(f"you are in {room} as {name}; others come with --room {room} --join {host}:{port}", flush=True)
        topic = f"rooms/{room}"
        async with node.subscribe(topic, since=time.time() - HISTORY_S) as said, asyncio.TaskGroup() as group:
            hearing = group.create_task(print_others(said, node))
            async for line in typed_lines():
                try:
                    await node.publish(topic, f"{name}\n{line}".encode(), timeout=PATIENCE_S)
                except NoPath:
                    print("(nobody is there to hear it; whoever comes soon will be told)", flush=True)
            hearing.cancel()


async def print_others(said: OrderedReader, node: Node) -> None:
    """Print what the others say, as it comes."""
    async for event in said:
        if isinstance(event, Gap):
            print(f"({event.last - event.first + 1} lines of {event.publisher.short} were lost)", flush=True)
        elif event.publisher != node.id:
            print(as_line(event), flush=True)


def as_line(event: Event) -> str:
    """One line for the terminal; control characters of strangers do not get there."""
    name, _, text = event.payload.decode(errors="replace").partition("\n")
    at = time.strftime("%H:%M", time.localtime(event.time))
    return "".join(c for c in f"{at} {name} ({str(event.publisher)[:4]}): {text}" if c.isprintable())


async def typed_lines() -> AsyncIterator[str]:
    """The lines of standard input, whatever it is: a terminal, a pipe or a file.

    A thread reads it, since reading waits. It reads without a buffer, which would be locked while it waits, and the
    program could not end before the next line.
    """
    loop, lines = asyncio.get_running_loop(), asyncio.Queue[bytes]()

    def read() -> None:
        with open(0, "rb", buffering=0, closefd=False) as typed, contextlib.suppress(RuntimeError):  # the loop is gone
            for line in typed:
                loop.call_soon_threadsafe(lines.put_nowait, line)
            loop.call_soon_threadsafe(lines.put_nowait, b"")

    threading.Thread(target=read, daemon=True).start()
    while line := await lines.get():
        if text := line.decode(errors="replace").strip():
            yield text


def main() -> None:
    """Read the arguments, and chat."""
    asked = argparse.ArgumentParser(description="A chat without a server.")
    asked.add_argument("--room", required=True, help="only those in the same room hear each other")
    asked.add_argument("--name", required=True, help="what the others call you")
    asked.add_argument("--listen", default="127.0.0.1:0", metavar="HOST:PORT", help="where others reach you")
    asked.add_argument("--join", action="append", default=[], metavar="HOST:PORT", help="somebody who is there already")
    try:
        asyncio.run(chat(**vars(asked.parse_args())))
    except asyncio.CancelledError:
        pass  # Ctrl-C: the node has left in good order
    except UsageError as error:
        raise SystemExit(f"error: {error}") from None


if __name__ == "__main__":
    main()
