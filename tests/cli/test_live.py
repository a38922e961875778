"""Live commands as a user meets them: processes of their own, what they print, and how they end."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import datetime
from pathlib import Path

import pytest

from grapevine.cli.live import parse_when
from grapevine.model.errors import UsageError
from grapevine.net.options import NodeOptions, configs_of, read_options
from grapevine.net.remote import Remote
from grapevine.systems.registry import systems_with
from tests.cli.command import COMMAND, PATIENCE_S, WIDE_AND_PLAIN, run


@contextmanager
def process(*arguments: str, cwd: Path) -> Iterator[subprocess.Popen[str]]:
    """A command that goes on; killed if the test does not end it."""
    log = (cwd / f"{arguments[0]}-{time.monotonic_ns()}.log").open("w+")
    started = subprocess.Popen(
        [*COMMAND, *arguments], stdout=subprocess.PIPE, stderr=log, text=True, cwd=cwd, env=os.environ | WIDE_AND_PLAIN
    )
    try:
        yield started
    finally:
        started.kill()
        started.communicate(timeout=PATIENCE_S)
        log.close()


def until_there(folder: Path, pattern: str = "control.json", text: str = "") -> None:
    """Wait for a file that holds this text."""
    end = time.monotonic() + PATIENCE_S
    while not any(text in path.read_text() for path in folder.glob(pattern)):
        assert time.monotonic() < end, f"{pattern} with {text!r} did not appear"
        time.sleep(0.05)


def endpoint(folder: Path, node: subprocess.Popen[str]) -> str:
    """Where a node listens, as it prints it."""
    until_there(folder)
    assert node.stdout is not None
    name, where = node.stdout.readline().split()[:2]
    assert name == "listens"
    return where


def test_what_a_node_has_and_how_fast_it_is_as_tables_and_as_json(tmp_path: Path) -> None:
    with process("node", "--data-dir", "a", "--subscribe", "news[1]", cwd=tmp_path) as first:
        where = endpoint(tmp_path / "a", first)
        with process("node", "--data-dir", "b", "--join", where, "--subscribe", "news[1]", cwd=tmp_path):
            until_there(tmp_path / "b")
            until_there(tmp_path, "node-*.log", "1 neighbour, 1 peer connected\n")
            (peer,) = json.loads(run("peers", "--node", "b", "--json", cwd=tmp_path).stdout)
            assert peer["endpoint"] == where
            shown = run("peers", "--node", "b", cwd=tmp_path)
            assert shown.returncode == 0 and "1 links" in shown.stdout and peer["peer"][:16] in shown.stdout
            (topic,) = json.loads(run("topics", "--node", "a", "--json", cwd=tmp_path).stdout)
            assert (topic["topic"], topic["wanted"], topic["missing"], topic["readers"]) == ("news[1]", True, 0, [])
            assert "news[1]" in run("topics", "--node", "a", cwd=tmp_path).stdout
            fast = run("bench", "--node", "a", "--messages", "30", "--publishers", "2", "--json", cwd=tmp_path)
            measured = json.loads(fast.stdout)
            assert measured["messages"] == 30 and measured["per_second"]["read"] > 0
            assert 0 < measured["delay_ms"]["50"] <= measured["delay_ms"]["99"] <= measured["delay_ms"]["100"]
            told = run("bench", "--node", "a", "-n", "5", cwd=tmp_path).stdout
            assert "published" in told and "msgs/s" in told and "99 % within" in told
            assert run("bench", "--node", "a", "--size", "7", cwd=tmp_path).returncode == 2


def test_two_nodes_a_publisher_and_a_subscriber_and_what_was_kept_after_a_restart(tmp_path: Path) -> None:
    with process("node", "--data-dir", "a", "--subscribe", "news", "--log", "json", cwd=tmp_path) as first:
        where = endpoint(tmp_path / "a", first)
        with process("node", "--data-dir", "b", "--join", where, "--diary", "diaries", cwd=tmp_path) as second:
            until_there(tmp_path / "b")
            with process("subscribe", "news", "--node", "b", "--count", "2", "--json", cwd=tmp_path) as reader:
                until_there(tmp_path, "subscribe-*.log", "subscribed to news")
                published = run("publish", "news", "hello", "--node", "a", "--json", cwd=tmp_path)
                assert published.returncode == 0, published.stderr
                piped = run("publish", "news", "-", "--node", "a/control.json", cwd=tmp_path, input="grüß dich")
                assert piped.stdout.startswith("event 2 of ")
                out, _ = reader.communicate(timeout=PATIENCE_S)
                assert reader.returncode == 0
            # In the order of arrival: the first may have had no path yet, and come by recovery after the second.
            assert sorted(json.loads(line)["text"] for line in out.splitlines()) == ["grüß dich", "hello"]
            until_there(tmp_path, "node-*.log", '"neighbours": 1')
            status = run("status", "--node", "a", cwd=tmp_path)
            assert status.returncode == 0 and "health   ok" in status.stdout and "2 published" in status.stdout
            until_there(tmp_path, "node-*.log", "1 neighbour, 1 peer connected\n")
            for node, folder in ((second, "b"), (first, "a")):
                node.send_signal(signal.SIGTERM)
                node.communicate(timeout=PATIENCE_S)
                assert node.returncode == 0
                assert not (tmp_path / folder / "control.json").exists()
    for_programs, for_people = (log.read_text().splitlines() for log in sorted(tmp_path.glob("node-*.log")))
    messages = [json.loads(line)["message"] for line in for_programs]
    assert messages[0].endswith(" is up, waiting for others to join") and messages[-1].endswith(" leaves")
    assert for_people[0].endswith(f" is up, joining {where}") and for_people[-1].endswith(" leaves")
    assert not any("{" in line for line in for_people)
    (diary,) = (tmp_path / "diaries").iterdir()
    assert json.loads(diary.read_text().splitlines()[-1])["what"] == "end"
    with process("node", "--data-dir", "a", "--subscribe", "news", cwd=tmp_path) as again:
        until_there(tmp_path / "a")
        Remote.find(tmp_path / "a").publish("news", b"back")
        stream = Remote.find(tmp_path / "a").subscribe(["news"], since=0)
        assert [next(stream).get("text") for _ in range(4)] == [None, "hello", "grüß dich", "back"]
        again.send_signal(signal.SIGINT)
        assert list(stream) == []
        again.communicate(timeout=PATIENCE_S)
        assert again.returncode == 0


@pytest.mark.parametrize(
    ("arguments", "expected"),
    [
        (["publish", "news", "x"], ["there is no control file of a running node", "--node DIR or GRAPEVINE_NODE"]),
        (["subscribe", "news", "--node", "bad.json"], ["bad.json: is no control file"]),
        (["status", "--node", "bad.json"], ["bad.json: is no control file"]),
        (["subscribe", "news", "--node", "gone.json", "--since", "soon"], ["--since soon: give beginning, 90s"]),
        (
            [
                "node",
                "--listen",
                "here",
                "--join",
                "h:0",
                "--set",
                "most_connections=1",
                "--set",
                "x=1",
                "--system",
                "pigeons",
            ],
            [
                "'here' is no endpoint",
                "h:0 is no endpoint to join",
                "most_connections=1: needs at least 2",
                "a node has no parameter x; it has frame_bytes, most_connections",
            ],
        ),
        (
            ["node", "--config", "node.toml"],
            ["node.toml has no key lisen; it has listen, join", "did you mean listen?", "join='x:1': write a list"],
        ),
        (["node", "--data-dir", "bad.json"], ["bad.json"]),
        (["cluster", "--nodes", "3", "--processes", "9"], ["processes=9: there are only nodes=3"]),
        (["cluster", "--log", "xml"], ["--log 'xml': choose one of plain, json"]),
        (["cluster", "--kill", "half@2"], ["--kill half@2: write SHARE@SECOND"]),
        (["cluster", "--processes", "2", "--kill", "0.5@2+1"], ["--kill: processes that are to come back need --data"]),
        (["cluster", "--full-disk", "0.5@2+1"], ["--full-disk 0.5@2+1: write NODES@SECOND+SECONDS"]),
        (
            ["cluster", "--set", "table_size=x", "--set", "most_connections=0"],
            ["--set table_size=x: needs a whole number", "--set most_connections=0: needs at least 2"],
        ),
    ],
)
def test_mistakes_are_one_line_and_exit_2(tmp_path: Path, arguments: list[str], expected: list[str]) -> None:
    (tmp_path / "bad.json").write_text("{}")
    (tmp_path / "gone.json").write_text('{"url": "http://127.0.0.1:9", "token": "x"}')
    (tmp_path / "node.toml").write_text('lisen = "x"\njoin = "x:1"\n')
    done = run(*arguments, cwd=tmp_path)
    assert done.returncode == 2, done.stderr
    assert all(part in " ".join(done.stderr.split()) for part in expected), done.stderr
    assert len(done.stderr.splitlines()) == 1


def test_a_node_that_is_gone_is_a_failure(tmp_path: Path) -> None:
    (tmp_path / "control.json").write_text('{"url": "unix:/nowhere", "token": "x"}')
    done = run("publish", "news", "x", cwd=tmp_path)
    assert (done.returncode, done.stdout) == (1, "")
    assert "no node answers" in done.stderr


def test_flags_win_over_the_file_and_both_over_defaults(tmp_path: Path) -> None:
    file = tmp_path / "node.toml"
    file.write_text(
        'listen = "127.0.0.1:1"\nsubscribe = ["a"]\nnetwork = "n"\n'
        "[settings]\nmost_connections = 9\nidle_s = 3\n[parameters]\ntable_size = 20\n[retention]\nage_s = 60\n"
    )
    options = read_options(file, {"listen": "127.0.0.1:2", "join": None}, ["most_connections=8", "total_bytes=5"])
    assert options == NodeOptions(
        listen="127.0.0.1:2",
        subscribe=["a"],
        network="n",
        settings={"most_connections": 8, "idle_s": 3.0},
        parameters={"table_size": 20},
        retention={"age_s": 60.0, "total_bytes": 5},
    )


def test_every_mistake_of_a_file_is_told(tmp_path: Path) -> None:
    file = tmp_path / "node.toml"
    file.write_text(
        'system = "vitis"\n[settings]\nmost_connections = "many"\nfriends = 2\n[parameters]\ntable_size = 1\n'
    )
    with pytest.raises(UsageError) as raised:
        read_options(file, {"log": "jsn", "log_level": "loud"}, ["frame_bytes=x", "plain"])
    for part in (
        f"{file}: most_connections='many': needs a whole number",
        f"{file}: [settings] has no parameter friends; it has frame_bytes, most_connections",
        f"{file}: table_size=1: needs at least 4",
        "log='jsn': choose one of plain, json; did you mean json?",
        "log_level='loud'",
        "--set frame_bytes=x: needs a whole number",
        "--set plain: write it as key=value",
    ):
        assert part in str(raised.value)


@pytest.mark.parametrize("system", systems_with("live"))
def test_a_setting_has_one_owner(system: str) -> None:
    names = [name for config in configs_of(system).values() for name in config.__dataclass_fields__]
    assert len(names) == len(set(names))


def test_times_can_be_given_in_several_ways() -> None:
    now = time.time()
    assert parse_when("1700000000.5") == 1700000000.5
    assert abs(float(parse_when("90s")) - (now - 90)) < 5
    assert abs(float(parse_when("2h")) - (now - 7_200)) < 5
    assert parse_when("2026-01-31T12:00") == datetime(2026, 1, 31, 12).timestamp()
