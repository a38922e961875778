"""The door of a node for programs on its machine: HTTP on the loopback, or on a Unix socket, opened by a token.

    GET  /health                       whether the node does its work: 200, or 503 and why; needs no token
    GET  /metrics                      for Prometheus
    GET  /stats                        the same as JSON
    GET  /peers, /topics               whom it is linked to, and what is known of its topics: a list each
    POST /publish?topic=T              the body is the payload; publisher, sequence and time of the event
    GET  /ws, /events                  for browsers: `doors.browser`
    GET  /subscribe?topic=T[&topic=…]  a line of JSON per event or gap, without end; &since=SECONDS|beginning|now,
                                       &policy=block|drop-…, &ordered=true|false

Url and token are in a file that only its owner may read. Every mistake is answered with `{"error": "a sentence"}`.
"""

from __future__ import annotations

import asyncio
import contextlib
import hmac
import json
import logging
import math
import os
import secrets
from collections.abc import Awaitable, Callable, Sequence
from pathlib import Path
from typing import Any

from aiohttp import web
from prometheus_client import CONTENT_TYPE_LATEST, generate_latest

from grapevine.model.errors import GrapevineError, UsageError
from grapevine.model.identity import PeerId
from grapevine.net.contacts import is_loopback, parse_endpoint
from grapevine.net.control_file import UNIX
from grapevine.net.doors.browser import PATHS, BrowserDoor
from grapevine.net.doors.lines import described, epoch_of, line_of
from grapevine.net.inbox import Inbox, Lagged, policy_of
from grapevine.net.inspection import peers_of, topics_of
from grapevine.net.metrics import registry_of
from grapevine.net.node import Node, NoPath, NotConfirmed, Since
from grapevine.net.ordered_reader import OrderedReader
from grapevine.net.reader import Reader

_TOPIC_CHARACTERS = 1_024
_STREAMS = 256  # at a time
_SHUTDOWN_S = 1.0
_log = logging.getLogger(__name__)

_Handler = Callable[[web.Request], Awaitable[web.StreamResponse]]


class Control:
    """The server of one node. It is closed after the node, so that it can tell that the node is leaving."""

    def __init__(self, file: Path) -> None:
        self.file, self.url = file, ""
        self._token = secrets.token_urlsafe(32)
        self._node: Node
        self._runner: web.AppRunner | None = None
        self._streams: set[asyncio.Task[Any]] = set()
        # Named readers that are streamed, by topic and name, and who streams them.
        self._readers: dict[tuple[str, str], tuple[Reader, asyncio.Task[Any]]] = {}

    async def serve(self, node: Node, at: str = "127.0.0.1:0", origins: Sequence[str] = ()) -> str:
        """Answer at HOST:PORT or unix:PATH, and write down where; UsageError if that cannot be. `origins` are those of
        pages that may come in, beside the server's own."""
        self._node, self._registry = node, registry_of(node)
        self._browsers = BrowserDoor(node, self._token, origins, lambda: self.url)
        app = web.Application(client_max_size=node.config.payload_bytes + 1, middlewares=[self._guard])
        app.add_routes(
            [
                web.get("/health", self._health),
                web.get("/metrics", self._metrics),
                web.get("/stats", self._stats),
                web.get("/peers", self._peers),
                web.get("/topics", self._list_topics),
                web.post("/publish", self._publish),
                web.get("/subscribe", self._subscribe),
                web.post("/ack", self._ack),
                *self._browsers.routes(),
            ]
        )
        self._runner = web.AppRunner(app, access_log=None, handler_cancellation=True, shutdown_timeout=_SHUTDOWN_S)
        await self._runner.setup()
        try:
            self.url = await self._listen(self._runner, at)
        except OSError as error:
            raise UsageError(f"{at}: cannot be listened on ({error.strerror}); choose another --control") from None
        self._write_file()
        return self.url

    async def close(self) -> None:
        """End all streams, and listen no more."""
        for task in self._streams:
            task.cancel()
        if self._runner is not None:
            await self._browsers.close()
            await self._runner.cleanup()
            with contextlib.suppress(OSError):
                self.file.unlink()

    async def _listen(self, runner: web.AppRunner, at: str) -> str:
        if at.startswith(UNIX):
            path = at.removeprefix(UNIX)
            with contextlib.suppress(FileNotFoundError):
                if Path(path).is_socket():  # left behind by a crash; a living node has its folder locked
                    Path(path).unlink()
            await web.UnixSite(runner, path).start()
            Path(path).chmod(0o600)
            return f"{UNIX}{Path(path).absolute()}"
        host, port = parse_endpoint(at)
        if not is_loopback(host):
            _log.warning("the control server listens on %s: its token travels unencrypted", host)
        await web.TCPSite(runner, host, port).start()
        found_host, found_port = runner.addresses[0][:2]
        return f"http://[{found_host}]:{found_port}" if ":" in found_host else f"http://{found_host}:{found_port}"

    def _write_file(self) -> None:
        content = {"url": self.url, "token": self._token, "peer": str(self._node.id), "pid": os.getpid()}
        partial = self.file.with_name(f".{self.file.name}.{os.getpid()}.partial")
        try:
            self.file.parent.mkdir(parents=True, exist_ok=True)
            partial.unlink(missing_ok=True)
            with os.fdopen(os.open(partial, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "w") as file:
                json.dump(content, file)
            partial.replace(self.file)
        except OSError as error:
            raise UsageError(f"{self.file}: cannot be written ({error.strerror}); choose another") from None

    @web.middleware
    async def _guard(self, request: web.Request, handler: _Handler) -> web.StreamResponse:
        try:
            if request.path in PATHS:
                if (refused := self._browsers.refusal(request)) is not None:
                    return _error(*refused)
            elif request.path != "/health" and not self._is_known(request):
                return _error(401, f"the token is missing or wrong; it is in {self.file.name} of the node")
            return await handler(request)
        except web.HTTPException as error:
            return _error(error.status, error.reason)
        except UsageError as error:
            return _error(400, str(error))
        except (NoPath, NotConfirmed) as error:
            return _error(503, str(error))
        except GrapevineError as error:
            return _error(500, str(error))
        except ConnectionError:
            raise  # the caller has gone: there is nobody to answer
        except Exception:
            _log.exception("%s %s failed", request.method, request.path)
            return _error(500, "the node failed to answer; its log tells why")

    def _is_known(self, request: web.Request) -> bool:
        given = request.headers.get("Authorization", "").encode("utf-8", "surrogateescape")
        return hmac.compare_digest(given, f"Bearer {self._token}".encode())

    async def _health(self, request: web.Request) -> web.Response:
        found, trouble = self._node.conditions(), self._node.trouble()
        answer: dict[str, Any] = {"status": "ok" if not found else "degraded" if trouble is None else "not ok"}
        if trouble is not None:
            answer["reason"] = trouble
        if found:
            answer["conditions"] = {condition.name: condition.sentence for condition in found}
        return web.json_response(answer, status=200 if trouble is None else 503)

    async def _metrics(self, request: web.Request) -> web.Response:
        return web.Response(body=generate_latest(self._registry), headers={"Content-Type": CONTENT_TYPE_LATEST})

    async def _stats(self, request: web.Request) -> web.Response:
        node = self._node
        host, port = node.endpoint
        about: dict[str, Any] = {"peer": str(node.id), "endpoint": f"{host}:{port}", "topics": node.subscriptions}
        about["conditions"] = {condition.name: condition.sentence for condition in node.conditions()}
        return web.json_response(about | node.stats())

    async def _peers(self, request: web.Request) -> web.Response:
        return web.json_response(peers_of(self._node))

    async def _list_topics(self, request: web.Request) -> web.Response:
        return web.json_response(await topics_of(self._node))

    async def _publish(self, request: web.Request) -> web.Response:
        (topic,) = _topics(request, most=1)
        timeout, acks = _number(request, "timeout"), _number(request, "acks") or 0
        if acks != int(acks):
            raise UsageError(f"acks={acks:g}: give a whole number")
        payload = await request.read()
        # Whoever hangs up while the event waits for a path does not take it back: it is on the disk.
        event = await asyncio.shield(
            asyncio.ensure_future(self._node.publish(topic, payload, acks=int(acks), timeout=timeout))
        )
        return web.json_response(
            {"topic": topic, "publisher": str(event.publisher), "sequence": event.sequence, "time": event.time}
            | epoch_of(event)
        )

    async def _subscribe(self, request: web.Request) -> web.StreamResponse:
        topics = _topics(request, most=_STREAMS)
        policy, since = policy_of(request.query.get("policy", "block")), _since(request)
        ordered = _is_true(request, "ordered", default=True)
        if len(self._streams) >= _STREAMS:
            return _error(503, f"there are {_STREAMS} streams already; close one")
        name = request.query.get("name")
        how: dict[str, Any] = {"policy": policy, "since": since, "ordered": ordered}
        how |= {} if name is None else {"name": name, "ack": "explicit"}
        inboxes: list[Inbox | OrderedReader] = [self._node.subscribe(topic, **how) for topic in topics]
        this = asyncio.current_task()
        assert this is not None
        self._streams.add(this)
        response = web.StreamResponse(headers={"Content-Type": "application/x-ndjson", "Cache-Control": "no-store"})
        try:
            async with contextlib.AsyncExitStack() as stack:
                for inbox in inboxes:
                    await self._enter(inbox, this, stack)
                await response.prepare(request)
                await response.write(line_of({"subscribed": topics}))
                async with asyncio.TaskGroup() as group:
                    for inbox in inboxes:
                        group.create_task(_pump(inbox, response))
                await response.write_eof()
        except* ConnectionError:
            pass  # the reader has gone
        finally:
            self._streams.discard(this)
        return response

    async def _enter(
        self, inbox: Inbox | OrderedReader, this: asyncio.Task[Any], stack: contextlib.AsyncExitStack
    ) -> None:
        """Begin to read. Under a name, the stream takes over from one that is still there: whoever comes back has lost
        its connection, perhaps before this end of it has noticed."""
        if isinstance(inbox, Reader):
            at = inbox.topic, inbox.name
            if at in self._readers:
                _, before = self._readers[at]
                before.cancel()
                await asyncio.wait([before])
            stack.callback(self._forget, at, inbox)  # after the reader has left, as this is undone backwards
            await stack.enter_async_context(inbox)
            self._readers[at] = inbox, this
        else:
            await stack.enter_async_context(inbox)

    def _forget(self, at: tuple[str, str], reader: Reader) -> None:
        if at in self._readers and self._readers[at][0] is reader:
            del self._readers[at]

    async def _ack(self, request: web.Request) -> web.Response:
        """Whoever streams under a name has handled an event, and all before it of the same publisher."""
        (topic,), name = _topics(request, most=1), request.query.get("name", "")
        if (topic, name) not in self._readers:
            raise UsageError(f"nobody streams {topic!r} under the name {name!r}; ack while /subscribe?name= goes on")
        sequence, epoch = request.query.get("sequence", ""), request.query.get("epoch", "0")
        for given, text in (("sequence", sequence), ("epoch", epoch)):
            if not text.isascii() or not text.isdigit() or int(text) >= 2**63:
                raise UsageError(f"{given}={text!r}: give that of an event, or the last one of a gap")
        reader, _ = self._readers[topic, name]
        await reader.ack_up_to(PeerId.parse(request.query.get("publisher", "")), int(sequence), int(epoch))
        return web.json_response({"acknowledged": int(sequence)})


async def _pump(inbox: Inbox | OrderedReader, response: web.StreamResponse) -> None:
    """Events of one topic as lines; a reader that is slow holds up its own inbox only."""
    while True:
        try:
            line = described(await inbox.get())
        except Lagged as lag:
            line = {"lagged": lag.count, "topic": inbox.topic}
        except StopAsyncIteration:
            return
        await response.write(line_of(line))


def _error(status: int, sentence: str) -> web.Response:
    headers = {"WWW-Authenticate": "Bearer"} if status == 401 else None
    return web.json_response({"error": sentence}, status=status, headers=headers)


def _topics(request: web.Request, *, most: int) -> list[str]:
    topics = list(dict.fromkeys(request.query.getall("topic", [])))
    if not 1 <= len(topics) <= most:
        raise UsageError(
            f"{len(topics)} topics were given; give {'one' if most == 1 else f'1 to {most}'} as ?topic=NAME"
        )
    for topic in topics:
        if not 0 < len(topic) <= _TOPIC_CHARACTERS:
            raise UsageError(f"a topic of {len(topic)} characters; give 1 to {_TOPIC_CHARACTERS}")
    return topics


def _number(request: web.Request, name: str) -> float | None:
    text = request.query.get(name)
    if text is None:
        return None
    try:
        number = float(text)
    except ValueError:
        number = math.nan
    if not 0 <= number < 1e12:
        raise UsageError(f"{name}={text!r}: give a number of zero or more")
    return number


def _since(request: web.Request) -> Since:
    text = request.query.get("since", "now")
    if text == "beginning" or text == "now":
        return text
    return _number(request, "since")


def _is_true(request: web.Request, name: str, *, default: bool) -> bool:
    text = request.query.get(name, str(default).lower())
    if text not in ("true", "false"):
        raise UsageError(f"{name}={text!r}: give true or false")
    return text == "true"
