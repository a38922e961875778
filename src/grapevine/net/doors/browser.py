"""The door for browsers, on the control server: a WebSocket, and server-sent events where reading is enough.

    GET /ws        WebSocket, subprotocols `grapevine` and `token.TOKEN`. Every message is a JSON object:
                   {"subscribe": ["T"], "since": SECONDS or "beginning"}, {"unsubscribe": ["T"]},
                   {"publish": "T", "text": "…"} or {"publish": "T", "payload": "base 64"}, with "acks": N
                   Answers have the request's "id", if it has one: {"subscribed": […]}, {"unsubscribed": […]},
                   {"published": {…}}, {"error": "a sentence"}. Events and gaps come as lines of `/subscribe` do.
    GET /events?topic=T[&topic=…]&token=TOKEN    server-sent events, whose data are the same lines

A browser sends the origin of the page that asks. It has to be one of those that the node was started with (`--origin`),
or the server's own: a token alone must not let any page that learns it in. Programs without an origin need the token.
"""

from __future__ import annotations

import asyncio
import base64
import binascii
import hmac
import json
from collections.abc import Awaitable, Callable, Collection
from contextlib import AsyncExitStack
from typing import Any

from aiohttp import WSMsgType, web

from grapevine.model.errors import GrapevineError, UsageError
from grapevine.net.doors.lines import described, epoch_of, line_of
from grapevine.net.inbox import Lagged
from grapevine.net.node import Node, Since
from grapevine.net.ordered_reader import OrderedReader

PATHS = ("/ws", "/events")
_PROTOCOL, _TOKEN = "grapevine", "token."
_MOST_TOPICS = 256  # of one connection
_MOST_CONNECTIONS = 256
_HEARTBEAT_S = 30.0
_JSON_BYTES = 4_096  # of a request, beside its payload in base 64


class BrowserDoor:
    """Pages that read and publish through one node."""

    def __init__(self, node: Node, token: str, origins: Collection[str], own_origin: Callable[[], str]) -> None:
        self._node, self._token, self._origins, self._own_origin = node, token, frozenset(origins), own_origin
        self._open: set[asyncio.Task[Any]] = set()

    def routes(self) -> list[web.RouteDef]:
        """What the control server has to route here."""
        return [web.get("/ws", self._speak), web.get("/events", self._stream)]

    def refusal(self, request: web.Request) -> tuple[int, str] | None:
        """Why a request to one of `PATHS` may not be answered: status and sentence; None: it may."""
        origin = request.headers.get("Origin")
        if origin is not None and origin not in self._origins and origin != self._own_origin():
            return 403, f"pages of {origin} may not come in; start the node with --origin {origin}"
        offered = [part.strip() for part in request.headers.get("Sec-WebSocket-Protocol", "").split(",")]
        tokens = [part.removeprefix(_TOKEN) for part in offered if part.startswith(_TOKEN)]
        given = tokens[0] if tokens else request.query.get("token", "")
        if not hmac.compare_digest(given.encode("utf-8", "surrogateescape"), self._token.encode()):
            return 401, "the token is missing or wrong; it is in the control file of the node"
        if len(self._open) >= _MOST_CONNECTIONS:
            return 503, f"there are {_MOST_CONNECTIONS} pages already; close one"
        return None

    async def close(self) -> None:
        """End all connections."""
        for task in self._open:
            task.cancel()

    async def _stream(self, request: web.Request) -> web.StreamResponse:
        topics = request.query.getall("topic", [])
        if not 1 <= len(topics) <= _MOST_TOPICS:
            raise UsageError(f"{len(topics)} topics were given; give 1 to {_MOST_TOPICS} as ?topic=NAME")
        headers = {"Content-Type": "text/event-stream", "Cache-Control": "no-store"}
        if "Origin" in request.headers:
            headers["Access-Control-Allow-Origin"] = request.headers["Origin"]
        response = web.StreamResponse(headers=headers)

        async def send(content: dict[str, Any]) -> None:
            await response.write(b"data: " + line_of(content) + b"\n")

        async with _Readers(self._node, send) as readers, self._present():
            await readers.add(list(dict.fromkeys(topics)), "now")
            await response.prepare(request)
            await send({"subscribed": sorted(readers.topics)})
            await readers.ended()
        return response

    async def _speak(self, request: web.Request) -> web.StreamResponse:
        most = _JSON_BYTES + 2 * self._node.config.payload_bytes
        socket = web.WebSocketResponse(protocols=(_PROTOCOL,), heartbeat=_HEARTBEAT_S, max_msg_size=most)
        await socket.prepare(request)

        async def send(content: dict[str, Any]) -> None:
            await socket.send_str(json.dumps(content, ensure_ascii=False))

        async with _Readers(self._node, send) as readers, self._present():
            async for message in socket:
                if message.type is not WSMsgType.TEXT:
                    break
                await self._answer(readers, message.data, send)
        return socket

    async def _answer(self, readers: _Readers, text: str, send: Callable[[dict[str, Any]], Awaitable[None]]) -> None:
        number: dict[str, Any] = {}
        try:
            asked = json.loads(text)
            if not isinstance(asked, dict):
                raise UsageError("a message is a JSON object")
            number = {"id": asked["id"]} if isinstance(asked.get("id"), int | str) else {}
            await send(await self._done(readers, asked) | number)
        except (ValueError, RecursionError):
            await send({"error": "a message is a JSON object"} | number)
        except GrapevineError as error:
            await send({"error": str(error)} | number)

    async def _done(self, readers: _Readers, asked: dict[str, Any]) -> dict[str, Any]:
        if "publish" in asked:
            event = await self._node.publish(_name(asked["publish"]), _payload(asked), acks=asked.get("acks", 0))
            place = {"publisher": str(event.publisher), "sequence": event.sequence, "time": event.time}
            return {"published": {"topic": event.topic} | place | epoch_of(event)}
        if "subscribe" in asked:
            topics = _names(asked["subscribe"])
            await readers.add(topics, asked.get("since", "now"))
            return {"subscribed": topics}
        if "unsubscribe" in asked:
            topics = _names(asked["unsubscribe"])
            await readers.remove(topics)
            return {"unsubscribed": topics}
        raise UsageError("a message has one of: publish, subscribe, unsubscribe")

    def _present(self) -> _Present:
        return _Present(self._open)


class _Present:
    """This task is one of those that are open, as long as the block."""

    def __init__(self, tasks: set[asyncio.Task[Any]]) -> None:
        self._tasks, self._task = tasks, asyncio.current_task()

    async def __aenter__(self) -> None:
        assert self._task is not None
        self._tasks.add(self._task)

    async def __aexit__(self, *_: object) -> None:
        assert self._task is not None
        self._tasks.discard(self._task)


class _Readers:
    """The topics that one page reads. A page that is slow holds up its own readers only."""

    def __init__(self, node: Node, send: Callable[[dict[str, Any]], Awaitable[None]]) -> None:
        self._node, self._send = node, send
        self._reading: dict[str, tuple[AsyncExitStack, asyncio.Task[None]]] = {}

    @property
    def topics(self) -> Collection[str]:
        """What is read."""
        return self._reading.keys()

    async def __aenter__(self) -> _Readers:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.remove(list(self._reading))

    async def add(self, topics: list[str], since: Since) -> None:
        """Read these, too; what is read already goes on as it is. UsageError if they are too many."""
        new = [topic for topic in topics if topic not in self._reading]
        if len(self._reading) + len(new) > _MOST_TOPICS:
            raise UsageError(f"a page reads {_MOST_TOPICS} topics at most")
        for topic in new:
            stack = AsyncExitStack()
            reader = await stack.enter_async_context(self._node.subscribe(topic, since=since))
            self._reading[topic] = stack, asyncio.create_task(self._pump(reader))

    async def remove(self, topics: list[str]) -> None:
        """Read these no longer."""
        for topic in topics:
            if topic in self._reading:
                stack, task = self._reading.pop(topic)
                task.cancel()
                await stack.aclose()

    async def ended(self) -> None:
        """Wait until nothing more can come."""
        await asyncio.wait([task for _, task in self._reading.values()])

    async def _pump(self, reader: OrderedReader) -> None:
        while True:
            try:
                line = described(await reader.get())
            except Lagged as lag:
                line = {"lagged": lag.count, "topic": reader.topic}
            except StopAsyncIteration:
                return
            try:
                await self._send(line)
            except ConnectionError:
                return


def _name(given: object) -> str:
    if not isinstance(given, str) or not 0 < len(given) <= 1_024:
        raise UsageError(f"{given!r:.60}: a topic is a text of 1 to 1,024 characters")
    return given


def _names(given: object) -> list[str]:
    if not isinstance(given, list):
        raise UsageError("give topics as a list of texts")
    return [_name(one) for one in given]


def _payload(asked: dict[str, Any]) -> bytes:
    text, payload = asked.get("text"), asked.get("payload")
    try:
        if isinstance(text, str) and payload is None:
            return text.encode()
        if isinstance(payload, str) and text is None:
            return base64.b64decode(payload, validate=True)
    except (binascii.Error, UnicodeEncodeError):
        pass
    raise UsageError("give the payload as text, or as payload in base 64")
