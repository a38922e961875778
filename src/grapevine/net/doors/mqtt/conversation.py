"""What a client asks for, and what it is given: the packets of one connection, in both directions."""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine
from time import time
from typing import TYPE_CHECKING, TypeVar

import mqtt5

from grapevine.model.errors import GrapevineError, UsageError
from grapevine.net.confirmations import MOST_ACKS
from grapevine.net.doors.mqtt.answers import Answer, Answers
from grapevine.net.doors.mqtt.connection import Connection
from grapevine.net.doors.mqtt.feed import Feed
from grapevine.net.doors.mqtt.filters import SYSTEM, is_filter, is_name, is_shared
from grapevine.net.doors.mqtt.message import Extras, Message
from grapevine.net.doors.mqtt.outgoing import DONE, RELEASED, SENT, Pending
from grapevine.net.doors.mqtt.packets import extras_of, publication
from grapevine.net.doors.mqtt.session import Delivery, Session, Subscription
from grapevine.net.doors.mqtt.texts import Malformed
from grapevine.net.node import NotConfirmed

if TYPE_CHECKING:
    from grapevine.net.doors.mqtt.door import Door

Answer_ = TypeVar("Answer_")
_PROTOCOL_ERROR, _TOPIC_INVALID, _ALIAS_INVALID, _TOO_MANY = 0x82, 0x90, 0x94, 0x93
_ACKS = "acks"  # the user property that asks for confirmations of other nodes


class Conversation:
    """The packets of one connection. `session` is there from CONNECT on."""

    def __init__(self, door: Door, connection: Connection) -> None:
        config = door.config
        self.connection, self.keep_alive_s = connection, 0.0
        self.session: Session | None = None
        self.ended_well = False  # by DISCONNECT: there is no will then
        self._door, self._most = door, config.receive_maximum
        self._aliases: dict[int, str] = {}
        self._published = Answers(connection.send, connection.cut, self._most, config.client_bytes)
        self._released = Answers(connection.send, connection.cut, self._most, config.client_bytes)
        self._under_way: set[int] = set()  # packet identifiers of publications without an answer
        self._slots = asyncio.Semaphore(self._most)
        self._sent: set[int] = set()  # on this connection: identifiers that take a slot
        self._tasks: set[asyncio.Task[None]] = set()

    async def on_packet(self, packet: mqtt5.Packet) -> bool:
        """Act on a packet of the client."""
        session = self.session
        if session is None or isinstance(packet, mqtt5.ConnectPacket):
            if session is not None or not isinstance(packet, mqtt5.ConnectPacket):
                raise Malformed("a client says CONNECT once, at the beginning", _PROTOCOL_ERROR)  # MQTT-3.1.0-2
            return await self._connect(packet)
        match packet:
            case mqtt5.PublishPacket():
                await self._on_publish(session, packet)
            case mqtt5.PubAckPacket():
                number = packet.packet_id
                self._on_acknowledged(session, number, session.outgoing.acknowledge(number))
            case mqtt5.PubRecPacket():
                await self._on_received(session, packet)
            case mqtt5.PubRelPacket():
                await self._released.add(self._complete(session, packet.packet_id))
            case mqtt5.PubCompPacket():
                number = packet.packet_id
                self._on_acknowledged(session, number, session.outgoing.complete(number))
            case mqtt5.SubscribePacket():
                await self._on_subscribe(session, packet)
            case mqtt5.UnsubscribePacket():
                await self._on_unsubscribe(session, packet)
            case mqtt5.PingReqPacket():
                self.connection.send(mqtt5.PingRespPacket())
            case mqtt5.DisconnectPacket():
                self._on_disconnect(session, packet)
                return False
            case _:
                raise Malformed("there is no other way to authenticate here than by CONNECT", _PROTOCOL_ERROR)
        return True

    async def on_end(self) -> None:
        """What was begun is finished, so that the session is whole when the client comes back; then it waits."""
        for task in self._tasks:
            task.cancel()
        await self._published.finish()
        await self._released.finish()
        if self.session is not None:
            await self._door.leave(self.session, self)

    # CONNECT and DISCONNECT

    async def _connect(self, packet: mqtt5.ConnectPacket) -> bool:
        self.keep_alive_s = float(packet.keep_alive)
        self.connection.most_packet = packet.max_packet_size
        self._slots = asyncio.Semaphore(min(packet.receive_max, self._most))
        session, answer = await self._door.enter(self, packet)
        if session is None:
            self.connection.send(answer)
            return False
        self.session = session
        self.connection.send(answer)
        for pending in session.outgoing.pending():
            self._resume(session, pending)
        await whole(self._door.reading.begin_all(session))
        return True

    def _resume(self, session: Session, pending: Pending) -> None:
        """Go on with what an earlier connection left (MQTT-4.4.0-1). What is only SENT comes again from the node."""
        if pending.stage == SENT and pending.key[0] not in session.named:
            if pending.qos < 2:
                session.outgoing.forget(pending.key)
                return
            pending.stage = RELEASED  # it cannot be sent again; the client gives the number back
        if pending.stage == RELEASED:
            self.connection.send(mqtt5.PubRelPacket(pending.number))

    def _on_disconnect(self, session: Session, packet: mqtt5.DisconnectPacket) -> None:
        if packet.session_expiry_interval is not None:
            if packet.session_expiry_interval and not session.expiry_s:
                raise Malformed("a session that ends with its connection cannot be prolonged", _PROTOCOL_ERROR)
            session.expiry_s = min(float(packet.session_expiry_interval), self._door.config.session_s)
        self.ended_well = packet.reason_code == mqtt5.DisconnectReasonCode.NORMAL_DISCONNECTION

    # From the client

    async def _on_publish(self, session: Session, packet: mqtt5.PublishPacket) -> None:
        topic = self._topic_of(packet)
        if not is_name(topic) and not topic.startswith(SYSTEM):
            raise Malformed("a message needs the name of a topic, without wildcards and not too long", _TOPIC_INVALID)
        await self._door.reading.directory.announce(topic)
        number = packet.packet_id
        if number is not None:
            if packet.qos == 2 and number in session.received:
                await self._published.add(self._received_again(number))
                return
            if number in self._under_way:
                return  # it is answered when it is done
            if self.connection.codec.version == 5 and len(self._under_way | session.received) >= self._most:
                raise Malformed(f"more than {self._most} messages without an answer", _TOO_MANY)
            self._under_way.add(number)
        await self._published.add(self._publish(session, packet, topic), len(packet.payload))

    def _topic_of(self, packet: mqtt5.PublishPacket) -> str:
        """The topic, by its name or by an alias (MQTT-3.3.2-7 and following)."""
        alias = packet.topic_alias
        if alias is None:
            return packet.topic
        if not 0 < alias <= self._door.config.topic_aliases:
            raise Malformed(f"topic alias {alias} is none of the allowed", _ALIAS_INVALID)
        if packet.topic:
            self._aliases[alias] = packet.topic
        elif alias not in self._aliases:
            raise Malformed(f"topic alias {alias} was not set", _PROTOCOL_ERROR)
        return self._aliases[alias]

    async def _publish(self, session: Session, packet: mqtt5.PublishPacket, topic: str) -> Answer:
        code, sentence = 0, None
        try:
            acks, extras = _acks_of(extras_of(packet, session.client if session.has_no_local else ""))
            await self._door.publish(topic, packet.payload, extras, acks)
        except NotConfirmed as error:
            code, sentence = 0x83, str(error)
        except UsageError as error:
            code, sentence = 0x87, str(error)
        except GrapevineError as error:
            code, sentence = 0x80, str(error)
        number = packet.packet_id
        if number is None:
            return None
        self._under_way.discard(number)
        if code and self.connection.codec.version != 5:
            self.connection.cut()  # 3.1.1 has no other way to say so
            return None
        if packet.qos == 1:
            reason = mqtt5.PubAckReasonCode(code)
            return mqtt5.PubAckPacket(number, reason_code=reason, reason_str=sentence)
        if not code:
            session.received.add(number)
            await self._door.keep(session)
        return mqtt5.PubRecPacket(number, reason_code=mqtt5.PubRecReasonCode(code), reason_str=sentence)

    async def _received_again(self, number: int) -> Answer:
        return mqtt5.PubRecPacket(number)

    async def _complete(self, session: Session, number: int) -> Answer:
        if number not in session.received:
            return mqtt5.PubCompPacket(number, reason_code=mqtt5.PubCompReasonCode.PACKET_ID_NOT_FOUND)
        session.received.discard(number)
        await self._door.keep(session)  # before the client uses the number for another message
        return mqtt5.PubCompPacket(number)

    async def _on_subscribe(self, session: Session, packet: mqtt5.SubscribePacket) -> None:
        if not packet.topic_filters:
            raise Malformed("SUBSCRIBE without a filter", _PROTOCOL_ERROR)  # MQTT-3.8.3-2
        codes, retained = [], []
        for asked in packet.topic_filters:
            filter = asked.pattern
            if is_shared(filter):
                if asked.no_local:
                    raise Malformed("a shared subscription that is not local", _PROTOCOL_ERROR)  # MQTT-3.8.3-4
                codes.append(mqtt5.SubAckReasonCode.SHARED_SUBSCRIPTIONS_NOT_SUPPORTED)
                continue
            if not is_filter(filter):
                codes.append(mqtt5.SubAckReasonCode.TOPIC_FILTER_INVALID)
                continue
            if filter.startswith(SYSTEM):
                codes.append(mqtt5.SubAckReasonCode.NOT_AUTHORIZED)
                continue
            handling = asked.retain_handling
            before = session.subscriptions.get(filter)
            wants = handling == 0 or (handling == 1 and before is None)
            subscription = Subscription(
                *(filter, int(asked.max_qos), asked.no_local, asked.retain_as_published, wants),
                packet.subscription_id,
                int(1e3 * time()) / 1e3 if before is None else before.began,  # as events have their times
            )
            try:
                await whole(self._door.reading.subscribe(session, subscription))
            except UsageError:
                codes.append(mqtt5.SubAckReasonCode.QUOTA_EXCEEDED)
                continue
            except GrapevineError:
                codes.append(mqtt5.SubAckReasonCode.UNSPECIFIED_ERROR)
                continue
            codes.append(mqtt5.SubAckReasonCode(int(asked.max_qos)))
            retained += self._door.reading.retained(filter) if wants else []
        await self._door.keep(session)
        self.connection.send(mqtt5.SubAckPacket(packet.packet_id, codes))
        if retained:
            self.begin(self._give_retained(session, retained))

    async def _on_unsubscribe(self, session: Session, packet: mqtt5.UnsubscribePacket) -> None:
        if not packet.patterns:
            raise Malformed("UNSUBSCRIBE without a filter", _PROTOCOL_ERROR)  # MQTT-3.10.3-2
        codes = []
        for filter in packet.patterns:
            was_there = await whole(self._door.reading.unsubscribe(session, filter))
            code = mqtt5.UnsubAckReasonCode
            codes.append(code.SUCCESS if was_there else code.NO_SUBSCRIPTION_EXISTED)
        await self._door.keep(session)
        self.connection.send(mqtt5.UnsubAckPacket(packet.packet_id, codes))

    # To the client

    async def give(self, feed: Feed, message: Message) -> None:
        """Send a message that the client has to acknowledge. It waits until the client can take one more."""
        session = feed.session
        delivery = None if self.has_retained(session, message) else session.plan(message, feed.matched)
        if delivery is not None:
            feed.last[message.source] = message.sequence
        if delivery is None or not await self._send(session, message, delivery, message.sequence):
            feed.acknowledge(message.source, message.sequence)

    async def _send(self, session: Session, message: Message, delivery: Delivery, sequence: int) -> bool:
        """Send it under an identifier; False if the client has it, or cannot take it."""
        await self._slots.acquire()
        key = message.topic, message.source, sequence
        pending, is_again = session.outgoing.number_for(key, delivery.qos)
        if pending.stage != SENT or pending.number in self._sent:
            self._slots.release()
            return pending.stage != DONE
        packet = publication(message, delivery._replace(qos=pending.qos), pending.number, is_again=is_again)
        if packet is None:
            session.outgoing.forget(key)
            self._slots.release()
            return False
        self._sent.add(pending.number)
        if pending.qos == 2 and not is_again:
            await self._door.keep(session)  # a client must not meet this number with another message after a crash
        if not self.connection.send(packet):
            self._free(pending.number)
            session.outgoing.forget(key)  # the client takes none so long: it counts as delivered (MQTT-3.1.2-25)
            return False
        await self.connection.drained()
        return True

    def give_late(self, session: Session, message: Message) -> None:
        """A retained message that became known after the subscription; not if the topic itself brought it."""
        feed = session.feeds.get(message.topic)
        is_new = feed is None or message.sequence > feed.last.get(message.source, 0)
        wants = any(one.wants_retained for one in session.matching(message.topic))
        if wants and is_new and not self.has_retained(session, message):
            self.begin(self._give_retained(session, [message]))

    def has_retained(self, session: Session, message: Message) -> bool:
        """Whether the client was sent it as what its topic retains."""
        return session.retained.get(message.topic) == (message.source, message.sequence)

    async def _give_retained(self, session: Session, messages: list[Message]) -> None:
        for message in messages:
            matched = session.matching(message.topic)
            if not matched:
                continue
            session.retained[message.topic] = message.source, message.sequence
            qos = min(1, max(one.qos for one in matched))  # one that is interrupted does not come again
            identifiers = tuple(one.identifier for one in matched if one.identifier is not None)
            delivery = Delivery(qos, True, identifiers)
            if qos:
                await self._send(session, message, delivery, -message.sequence)
            elif (packet := publication(message, delivery, None, is_again=False)) is not None:
                self.connection.send(packet)
                await self.connection.drained()

    async def _on_received(self, session: Session, packet: mqtt5.PubRecPacket) -> None:
        number = packet.packet_id
        if int(packet.reason_code) >= 0x80:
            self._on_acknowledged(session, number, session.outgoing.acknowledge(number))
        elif session.outgoing.release(number) is not None:
            await self._released.add(self._release(session, number))
        else:
            code = mqtt5.PubRelReasonCode.PACKET_ID_NOT_FOUND
            self.connection.send(mqtt5.PubRelPacket(number, reason_code=code))

    async def _release(self, session: Session, number: int) -> Answer:
        await self._door.keep(session)
        return mqtt5.PubRelPacket(number)

    def _on_acknowledged(self, session: Session, number: int, pending: Pending | None) -> None:
        """A message is over for the client; None: nothing was waiting for that."""
        if pending is None:
            return
        topic, source, sequence = pending.key
        self._free(number)
        feed = session.feeds.get(topic)
        if feed is not None and sequence > 0:
            feed.acknowledge(source, sequence)
        else:
            session.outgoing.forget(pending.key)

    def _free(self, number: int) -> None:
        if number in self._sent:
            self._sent.discard(number)
            self._slots.release()

    def begin(self, work: Coroutine[None, None, None]) -> None:
        """Do something beside reading, as long as the connection lasts."""
        task = asyncio.create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)


async def whole(work: Coroutine[None, None, Answer_]) -> Answer_:
    """Do it to its end, also if this task is cancelled meanwhile: half a subscription would stay behind."""
    task = asyncio.ensure_future(work)
    try:
        return await asyncio.shield(task)
    except asyncio.CancelledError:
        await asyncio.wait([task])
        raise


def _acks_of(extras: Extras) -> tuple[int, Extras]:
    """How many other nodes are to confirm a message, and what is left of its properties."""
    asked = [value for name, value in extras.user if name == _ACKS]
    if not asked:
        return 0, extras
    if not asked[0].isascii() or not asked[0].isdigit() or int(asked[0]) > MOST_ACKS:
        raise UsageError(f"acks={asked[0]!r}: give a whole number up to {MOST_ACKS}")
    return int(asked[0]), extras
