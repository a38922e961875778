"""The door itself: it listens, knows all sessions, and is between them and the node.

Sessions are found by the identifier of their client, and one connection at a time has one. What they read is the matter
of `reading`.
"""

from __future__ import annotations

import asyncio
import logging
import ssl
from collections.abc import AsyncIterator, Coroutine
from contextlib import asynccontextmanager
from hashlib import blake2b
from pathlib import Path
from time import time
from weakref import WeakValueDictionary

import mqtt5
import msgspec

from grapevine.model.errors import GrapevineError, UsageError
from grapevine.net.contacts import is_loopback, parse_endpoint
from grapevine.net.doors.mqtt.config import DoorConfig
from grapevine.net.doors.mqtt.connection import Connection
from grapevine.net.doors.mqtt.conversation import Conversation
from grapevine.net.doors.mqtt.filters import is_name
from grapevine.net.doors.mqtt.message import HEADER_BYTES, Extras, packed
from grapevine.net.doors.mqtt.packets import extras_of
from grapevine.net.doors.mqtt.reading import Reading
from grapevine.net.doors.mqtt.session import CLIENT_CHARACTERS, Kept, Session
from grapevine.net.doors.mqtt.session_file import SessionFile
from grapevine.net.doors.mqtt.users import Users
from grapevine.net.node import Node, NoPath, NotConfirmed

_Code = mqtt5.ConnAckReasonCode
_log = logging.getLogger(__name__)


class Door:
    """The MQTT door of one node. Made by `Door.open`, and closed before the node."""

    def __init__(self, node: Node, config: DoorConfig, folder: Path | None) -> None:
        self.node, self.config = node, config
        self.sessions: dict[str, Session] = {}
        self.reading = Reading(node, config, self.sessions, self.keep, self._soon)
        self._file = SessionFile(folder)
        self._users = Users(Path(config.mqtt_users)) if config.mqtt_users else None
        self._entering: WeakValueDictionary[str, asyncio.Lock] = WeakValueDictionary()  # while somebody waits for one
        self._connections: set[Connection] = set()
        self._ends: dict[str, asyncio.TimerHandle] = {}
        self._wills: dict[str, tuple[asyncio.TimerHandle, mqtt5.Will]] = {}
        self._tasks: set[asyncio.Task[None]] = set()
        self._assigned = 0
        self._house: asyncio.Task[None] | None = None
        self._is_closing = False
        self._server: asyncio.Server | None = None

    @classmethod
    @asynccontextmanager
    async def open(cls, node: Node, at: str, config: DoorConfig, folder: Path | None) -> AsyncIterator[Door]:
        """A door that listens at HOST:PORT, for as long as the block; UsageError if it cannot.

        `folder` keeps its sessions; without one they end with the door.
        """
        door = cls(node, config, folder)
        try:
            await door._load()
            await door._listen(at)
            door._house = asyncio.create_task(door.reading.keep_house())
            yield door
        finally:
            await door._close()

    @property
    def endpoint(self) -> tuple[str, int]:
        """Where it listens: host and port."""
        assert self._server is not None
        host, port = self._server.sockets[0].getsockname()[:2]
        return host, port

    async def _listen(self, at: str) -> None:
        host, port = parse_endpoint(at)
        tls = _tls_of(self.config)
        if not is_loopback(host) and (tls is None or self._users is None):
            _log.warning("the MQTT door listens on %s without %s", host, "TLS" if tls is None else "users: for anybody")
        try:
            self._server = await asyncio.start_server(self._on_client, host, port, ssl=tls)
        except OSError as error:
            raise UsageError(f"{at}: cannot be listened on ({error.strerror}); choose another --mqtt") from None

    async def _close(self) -> None:
        self._is_closing = True
        if self._server is not None:
            self._server.close()
        await asyncio.gather(*(connection.end(taken_over=False) for connection in list(self._connections)))
        for handle in (*self._ends.values(), *(handle for handle, _ in self._wills.values())):
            handle.cancel()
        if self._house is not None:
            self._house.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)  # wills of those who were connected, too
        await self.reading.directory.close()
        await self._file.close()

    async def _on_client(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        if len(self._connections) >= self.config.most_clients or self._is_closing:
            writer.transport.abort()
            return
        connection = Connection(reader, writer, self.most_packet, self.config.client_bytes)
        self._connections.add(connection)
        try:
            await connection.run(lambda made: Conversation(self, made), self.config.connect_s)
        finally:
            self._connections.discard(connection)

    @property
    def most_packet(self) -> int:
        """Bytes of the longest packet that a client may send."""
        return self.node.config.payload_bytes + HEADER_BYTES

    # Sessions

    async def enter(
        self, conversation: Conversation, packet: mqtt5.ConnectPacket
    ) -> tuple[Session | None, mqtt5.ConnAckPacket]:
        """Whose session it is, new or as it was, and what the client is answered; None: it may not enter."""
        if (code := self._refusal(packet, conversation.connection.codec.version)) is not None:
            return None, mqtt5.ConnAckPacket(reason_code=code)
        client = packet.client_id or self._new_name()
        async with self._entering_as(client):
            session = self.sessions.get(client)
            if session is not None and session.conversation is not None:
                await session.conversation.connection.end(taken_over=True)
                session = self.sessions.get(client)
            if session is not None and packet.clean_start:
                await self._end(session)
                session = None
            is_present = session is not None
            expiry_s = min(float(packet.session_expiry_interval), self.config.session_s)
            if session is None:
                if len(self.sessions) >= self.config.most_sessions:
                    return None, mqtt5.ConnAckPacket(reason_code=_Code.QUOTA_EXCEEDED)
                session = self.sessions[client] = Session(client, expiry_s)
            session.expiry_s, session.conversation, session.will = expiry_s, conversation, packet.will
            session.began = time()
            if (handle := self._ends.pop(client, None)) is not None:
                handle.cancel()
            if (waiting := self._wills.pop(client, None)) is not None:
                waiting[0].cancel()  # it is back before its will was due (MQTT-3.1.3-9)
            await self.keep(session)
        answer = mqtt5.ConnAckPacket(
            session_present=is_present,
            session_expiry_interval=None if expiry_s == packet.session_expiry_interval else int(expiry_s),
            assigned_client_id=None if packet.client_id else client,
            receive_max=self.config.receive_maximum,
            topic_alias_max=self.config.topic_aliases,
            max_packet_size=self.most_packet,
            shared_subscription_available=False,
        )
        return session, answer

    @asynccontextmanager
    async def _entering_as(self, client: str) -> AsyncIterator[None]:
        """One at a time comes or goes under a name."""
        lock = self._entering.setdefault(client, asyncio.Lock())
        async with lock:
            yield

    def _refusal(self, packet: mqtt5.ConnectPacket, version: int) -> mqtt5.ConnAckReasonCode | None:
        if packet.authentication_method is not None:
            return _Code.BAD_AUTHENTICATION_METHOD
        if self._users is not None and not self._users.may_enter(packet.username, packet.password):
            return _Code.BAD_USER_NAME_OR_PASSWORD
        if len(packet.client_id) > CLIENT_CHARACTERS:
            return _Code.CLIENT_ID_NOT_VALID
        if not packet.client_id and version != 5 and not packet.clean_start:
            return _Code.CLIENT_ID_NOT_VALID  # 3.1.1, MQTT-3.1.3-8
        if packet.will is not None and not is_name(packet.will.topic):
            return _Code.TOPIC_NAME_INVALID
        return _Code.SERVER_UNAVAILABLE if self._is_closing else None

    def _new_name(self) -> str:
        self._assigned += 1
        seen = f"{self.node.id} {time()} {self._assigned}"
        return f"grapevine-{blake2b(seen.encode(), digest_size=8).hexdigest()}"

    async def leave(self, session: Session, conversation: Conversation) -> None:
        """A client has gone: its session waits for it, or ends."""
        if session.conversation is not conversation:
            return
        await self.reading.end_all(session)
        self._leave_will(session, conversation)
        if session.expiry_s <= 0:
            await self._end(session)
        else:
            await self.keep(session)
            self._end_later(session, session.expiry_s)

    def _leave_will(self, session: Session, conversation: Conversation) -> None:
        will, session.will = session.will, None
        if will is None or conversation.ended_well:
            return
        delay_s = min(float(will.will_delay_interval), session.expiry_s)
        if delay_s <= 0 or self._is_closing:
            self._soon(self._publish_will(will))
        else:
            handle = asyncio.get_running_loop().call_later(delay_s, self._on_will_due, session.client)
            self._wills[session.client] = handle, will

    def _on_will_due(self, client: str) -> None:
        _, will = self._wills.pop(client)
        self._soon(self._publish_will(will))

    async def _publish_will(self, will: mqtt5.Will) -> None:
        await self.reading.directory.announce(will.topic)
        await self.publish(will.topic, will.payload or b"", extras_of(will, ""), 0)

    def _end_later(self, session: Session, seconds: float) -> None:
        loop = asyncio.get_running_loop()
        self._ends[session.client] = loop.call_later(seconds, lambda: self._soon(self._end_unless_back(session)))

    async def _end_unless_back(self, session: Session) -> None:
        async with self._entering_as(session.client):
            if session.conversation is None and self.sessions.get(session.client) is session:
                await self._end(session)

    async def _end(self, session: Session) -> None:
        """Forget a session, and what the node kept for it. A will that waits is published now (MQTT-3.1.2-8)."""
        del self.sessions[session.client]
        if (waiting := self._wills.pop(session.client, None)) is not None:
            waiting[0].cancel()
            self._soon(self._publish_will(waiting[1]))
        await self.reading.forget_all(session)
        if session.is_durable:
            await self._file.put(session.client, None)

    async def keep(self, session: Session) -> None:
        """Write a session down, if it outlives its connection."""
        if session.is_durable and self.sessions.get(session.client) is session:
            await self._file.put(session.client, session.kept(time(), self.reading.owned))

    async def _load(self) -> None:
        for client, content in self._file.all().items():
            try:
                kept = msgspec.msgpack.decode(content, type=Kept)
            except msgspec.MsgspecError:
                _log.warning("the session of %r cannot be read, and is forgotten", client)
                continue
            self.reading.owned |= set(kept.owned)
            session = self.sessions[client] = Session(client, kept.expiry_s, kept)
            if kept.expires <= time():
                await self._end(session)
                continue
            self._end_later(session, kept.expires - time())
            for filter in session.subscriptions:
                await self.reading.directory.open_for(filter)

    # Publishing

    async def publish(self, topic: str, payload: bytes, extras: Extras, acks: int) -> None:
        """Publish for a client. It is on the node's disk when this returns, and with `acks` on those of others."""
        if not is_name(topic):
            raise UsageError(f"{topic!r}: names that begin with $ are the server's own")
        content = packed(payload, extras)
        retained = content if payload else b""
        try:
            event = await self.node.publish(topic, content, acks=acks, timeout=None if acks else 0.0)
        except (NoPath, NotConfirmed) as kept:  # it is on the disk, and that is what was promised
            if extras.retain and kept.event is not None:
                await self.reading.directory.retain(kept.event, retained)
            if acks:
                raise
            return
        if extras.retain:
            await self.reading.directory.retain(event, retained)

    def _soon(self, work: Coroutine[None, None, None]) -> None:
        async def done() -> None:
            try:
                await work
            except GrapevineError as error:
                _log.warning("the MQTT door could not do all: %s", error)

        task = asyncio.create_task(done())
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)


def _tls_of(config: DoorConfig) -> ssl.SSLContext | None:
    if not config.mqtt_certificate:
        return None
    context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    try:
        context.load_cert_chain(config.mqtt_certificate, config.mqtt_key or None)
    except OSError as error:
        raise UsageError(f"{config.mqtt_certificate}: is no certificate with its key ({error})") from None
    return context
