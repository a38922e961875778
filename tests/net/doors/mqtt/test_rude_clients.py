"""Clients that want more than their share, and what keeps the node from harm; who may enter; and how."""

from __future__ import annotations

import asyncio
import shutil
import ssl
import subprocess
from pathlib import Path
from typing import Any

import mqtt5
import pytest

from grapevine.model.errors import UsageError
from grapevine.net.doors.mqtt.users import Users
from tests.net.doors.mqtt.doors import Client, one_door
from tests.net.hostile import eventually
from tests.net.nodes import during

QOS = mqtt5.QoS


def test_there_are_only_so_many_clients_sessions_filters_and_topics() -> None:
    async def scenario() -> None:
        bounds = {"most_clients": 3, "most_sessions": 2, "most_filters": 2, "most_feeds": 3}
        async with one_door(**bounds) as door:
            first, second = await Client.of(door, "1"), await Client.of(door, "2")
            assert (await Client.of(door, "3")).answer.reason_code == mqtt5.ConnAckReasonCode.QUOTA_EXCEEDED
            assert await first.subscribe("a", "b", "c", qos=1) == [1, 1, 0x97]
            assert await second.subscribe("a", "d", qos=1) == [1, 0x97]
            third = await Client.at(door)
            assert await (await Client.at(door)).is_cut_off()
            third.vanish()
            await first.leave()
            assert await second.subscribe("d", qos=1) == [1]

    during(scenario())


def test_who_does_not_read_loses_messages_of_qos_0_and_costs_a_bounded_memory() -> None:
    async def scenario() -> None:
        async with one_door(client_bytes=50_000) as door:
            deaf, writer = await Client.of(door, "deaf"), await Client.of(door, "writer")
            deaf.reader._transport.pause_reading()  # type: ignore[attr-defined]
            deaf.send(mqtt5.SubscribePacket(1, [mqtt5.TopicFilter("a", max_qos=QOS(0))]))
            await eventually(lambda: "deaf" in door.sessions and "a" in door.sessions["deaf"].feeds)
            conversation = door.sessions["deaf"].conversation
            assert conversation is not None
            waiting = conversation.connection._writer.transport.get_write_buffer_size
            number = 0
            while not door.reading.dropped:
                number += 1
                await writer.publish("a", bytes(30_000), 1, number % 60_000 + 1)
                assert waiting() < 200_000
            deaf.vanish()
            assert (await Client.of(door, "other")).answer.reason_code == 0

    during(scenario())


def test_who_does_not_acknowledge_holds_up_nobody_else() -> None:
    async def scenario() -> None:
        async with one_door(receive_maximum=4) as door:
            lazy, diligent = await Client.of(door, "lazy"), await Client.of(door, "diligent")
            writer = await Client.of(door, "writer")
            for reader in (lazy, diligent):
                await reader.subscribe("a", qos=1)
            for number in range(1, 31):
                await writer.publish("a", b"%d" % number, 1)
            assert [int((await diligent.message()).payload) for _ in range(30)] == [*range(1, 31)]
            found = [await lazy.get(mqtt5.PublishPacket) for _ in range(4)]
            assert await lazy.is_quiet()
            for packet in found:
                await lazy.acknowledge(packet)
            assert [int((await lazy.message()).payload) for _ in range(26)] == [*range(5, 31)]

    during(scenario())


def test_a_payload_that_the_node_does_not_take_is_refused_and_the_connection_goes_on() -> None:
    async def scenario() -> None:
        async with one_door(payload_bytes=1_000) as door:
            client = await Client.of(door, "client")
            client.send(mqtt5.PublishPacket("a", bytes(1_001), qos=QOS(1), packet_id=1))
            answer = await client.get(mqtt5.PubAckPacket)
            assert answer.reason_code == mqtt5.PubAckReasonCode.NOT_AUTHORIZED
            assert "1,000" in (answer.reason_str or "")
            await client.publish("a", bytes(1_000), 1)

    during(scenario())


def test_hundreds_of_clients_that_come_and_go_leave_nothing_behind() -> None:
    async def scenario() -> None:
        async with one_door() as door:
            for number in range(150):
                client = await Client.of(door, f"client-{number}")
                client.send(mqtt5.SubscribePacket(1, [mqtt5.TopicFilter(f"a/{number}", max_qos=QOS(number % 3))]))
                if number % 2:
                    await client.get(mqtt5.SubAckPacket)
                client.vanish()
            await eventually(lambda: not door.sessions and not door._connections)
            await eventually(lambda: [name for name in door.node.subscriptions if not name.startswith("$")] == [])
            assert not door._ends and not door._wills and not len(door._entering) and door.reading._topics == 0
            assert door.reading.owned == set()

    during(scenario())


# Who may enter

needs_passwd = pytest.mark.skipif(
    shutil.which("mosquitto_passwd") is None, reason="mosquitto_passwd is not installed (Debian: mosquitto)"
)


@needs_passwd
def test_users_come_from_a_file_of_mosquitto_passwd(tmp_path: Path) -> None:
    file = tmp_path / "users"
    subprocess.run(["mosquitto_passwd", "-b", "-c", str(file), "ann", "secret"], check=True)

    async def scenario() -> None:
        async with one_door(mqtt_users=str(file)) as door:
            for name, password, code in (
                ("ann", b"secret", 0),
                ("ann", b"wrong", 0x86),
                ("bob", b"secret", 0x86),
                (None, None, 0x86),
                ("ann", None, 0x86),
            ):
                assert (await Client.of(door, "c", username=name, password=password)).answer.reason_code == code
            assert list(door.sessions) in (["c"], [])

    during(scenario())


@pytest.mark.parametrize(
    "line", ["ann", "ann:secret", "ann:$6$abc$def", "ann:$7$0$aaaa$aaaa", ":$7$1$aaaa$aaaa", "a:$7$1$$"]
)
def test_a_line_that_is_no_user_is_said_with_its_number(tmp_path: Path, line: str) -> None:
    file = tmp_path / "users"
    file.write_text(f"# users\n{line}\n")
    with pytest.raises(UsageError, match="line 2: is no NAME"):
        Users(file)


def test_files_that_are_not_there_are_said(tmp_path: Path) -> None:
    async def scenario() -> None:
        bad: dict[str, Any]
        for bad in ({"mqtt_users": "nowhere"}, {"mqtt_certificate": "nowhere"}):
            with pytest.raises(UsageError, match="nowhere"):
                async with one_door(**bad):
                    pass

    during(scenario())


def test_a_door_with_a_certificate_speaks_tls(tmp_path: Path) -> None:
    if shutil.which("openssl") is None:
        pytest.skip("openssl is not installed, and makes the certificate")
    both = tmp_path / "both.pem"
    made = "openssl req -x509 -newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes -days 2 -subj /CN=localhost"
    files = ["-keyout", str(tmp_path / "key.pem"), "-out", str(tmp_path / "certificate.pem")]
    subprocess.run([*made.split(), *files], check=True, capture_output=True)
    both.write_text((tmp_path / "key.pem").read_text() + (tmp_path / "certificate.pem").read_text())

    async def scenario() -> None:
        async with one_door(mqtt_certificate=str(both)) as door:
            context = ssl.create_default_context(cafile=str(tmp_path / "certificate.pem"))
            client = Client(*await asyncio.open_connection(*door.endpoint, ssl=context, server_hostname="localhost"))
            client.send(mqtt5.ConnectPacket("c"))
            assert (await client.get(mqtt5.ConnAckPacket)).reason_code == 0
            plain = await Client.at(door)
            plain.send(mqtt5.ConnectPacket("c"))
            assert await plain.frame() == b""

    during(scenario())
