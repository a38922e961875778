"""A node as a process, and what it tells: where it is, who keeps it company, and its metrics."""

from __future__ import annotations

import json
import os
import signal
import threading
from pathlib import Path

from prometheus_client import generate_latest

from grapevine.net.metrics import registry_of
from grapevine.net.options import NodeOptions
from grapevine.net.run import Started, run_node
from tests.net.nodes import during, opening


def test_a_node_runs_until_it_is_told_to_stop_and_says_where_it_is(tmp_path: Path) -> None:
    told: list[Started] = []

    def tell(started: Started) -> None:
        told.append(started)
        assert json.loads(started.control_file.read_text())["url"] == started.control_url
        threading.Timer(0.0, os.kill, (os.getpid(), signal.SIGTERM)).start()

    run_node(NodeOptions(subscribe=["x"], data_dir=str(tmp_path), settings={"durability": "process"}), tell)
    (started,) = told
    assert started.topics == ["x"] and started.endpoint.startswith("127.0.0.1:") and len(started.peer) == 64
    assert not started.control_file.exists()


def test_every_number_of_a_node_is_a_metric() -> None:
    async def scenario() -> None:
        async with opening() as node, node.subscribe("x"):
            await node.publish("x", b"")
            text = generate_latest(registry_of(node)).decode()
            for line in (
                f'grapevine_node_info{{peer="{node.id}"}} 1.0',
                "grapevine_subscriptions 1.0",
                "grapevine_unsent 0.0",
                "grapevine_published_total 1.0",
                "grapevine_delivered_total 1.0",
                'grapevine_bytes_total{direction="out"} 0.0',
            ):
                assert line in text

    during(scenario())
