"""A bridge to the web: programs publish with an HTTP request, and read topics as server-sent events.

    pip install fastapi uvicorn          # or: pip install 'grapevine-pubsub[examples]'
    python examples/fastapi_bridge.py --http 127.0.0.1:8000

    curl -N http://127.0.0.1:8000/topics/weather/oslo                # in another terminal
    curl -d '-3 C' http://127.0.0.1:8000/topics/weather/oslo         # in a third one

Behind the bridge is a node like any other: a second bridge with `--join` and the endpoint that the first one prints
shares its topics. Whoever reaches the bridge may publish and read, so it listens on this machine alone; in front of
others belongs something that asks who they are.
"""

from __future__ import annotations

import argparse
import asyncio
import socket
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, suppress
from typing import Any

import uvicorn
from fastapi import FastAPI, Request, Response
from fastapi.responses import JSONResponse
from fastapi.sse import EventSourceResponse, ServerSentEvent

from grapevine import UsageError
from grapevine.net import Gap, Node, NoPath
from grapevine.net.contacts import parse_endpoint


def bridge_to(node: Node) -> FastAPI:
    """The web application in front of a node. Topics may have slashes."""
    app = FastAPI(title="Grapevine over HTTP")

    @app.post("/topics/{topic:path}", status_code=201)
    async def publish(topic: str, request: Request) -> dict[str, Any]:
        """Publish the body of the request."""
        event = await node.publish(topic, await request.body())
        return {"publisher": str(event.publisher), "sequence": event.sequence, "time": event.time}

    @app.get("/topics/{topic:path}", response_class=EventSourceResponse)
    async def read(topic: str) -> AsyncIterator[ServerSentEvent]:
        """The topic's events from now on, without end."""
        async with node.subscribe(topic) as events:
            yield ServerSentEvent(comment=f"subscribed to {topic}")
            async for event in events:
                if isinstance(event, Gap):
                    lost = {"publisher": str(event.publisher), "first": event.first, "last": event.last}
                    yield ServerSentEvent(event="gap", data=lost | {"reason": event.reason})
                    continue
                text = event.payload.decode(errors="replace")
                told = {"publisher": str(event.publisher), "time": event.time, "text": text}
                yield ServerSentEvent(id=f"{event.publisher}-{event.sequence}", data=told)

    @app.exception_handler(UsageError)
    async def refuse(request: Request, error: Exception) -> Response:
        return JSONResponse({"error": str(error)}, status_code=400)

    @app.exception_handler(NoPath)
    async def keep(request: Request, error: Exception) -> Response:
        return JSONResponse({"kept": str(error)}, status_code=202)

    return app


class Server(uvicorn.Server):
    """A server that closes the node first when it stops. Streams end with it; otherwise it would wait for readers."""

    def __init__(self, config: uvicorn.Config, opened: AsyncExitStack) -> None:
        super().__init__(config)
        self._opened = opened

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        await self._opened.aclose()
        await super().shutdown(sockets)


async def serve(http: str, listen: str, join: list[str]) -> None:
    """Run a node and the bridge to it, until Ctrl-C."""
    host, port = parse_endpoint(http)
    async with AsyncExitStack() as stack:
        node = await stack.enter_async_context(Node.open(listen, join))
        config = uvicorn.Config(bridge_to(node), host=host, port=port, log_level="warning")
        bound = config.bind_socket()  # now, so that port 0 (any) has become a number
        address, at = "{}:{}".format(*bound.getsockname()), "{}:{}".format(*node.endpoint)
        print(f"http://{address}/topics/TOPIC leads to the node at {at}", flush=True)
        await Server(config, stack).serve(sockets=[bound])


def main() -> None:
    """Read the arguments, and serve."""
    asked = argparse.ArgumentParser(description="Publish and read topics over HTTP.")
    asked.add_argument("--http", default="127.0.0.1:8000", metavar="HOST:PORT", help="where programs reach the bridge")
    asked.add_argument("--listen", default="127.0.0.1:0", metavar="HOST:PORT", help="where nodes reach its node")
    asked.add_argument("--join", action="append", default=[], metavar="HOST:PORT", help="a node to begin with")
    try:
        with suppress(KeyboardInterrupt):
            asyncio.run(serve(**vars(asked.parse_args())))
    except UsageError as error:
        raise SystemExit(f"error: {error}") from None


if __name__ == "__main__":
    main()
