"""`grapevine node`, `publish` and `subscribe`: a live node, and what programs on its machine do with it."""

from __future__ import annotations

import json as json_
import re
import sys
import time
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.markup import escape

from grapevine.cli.console import JsonOption, Stopped, err, out, print_json
from grapevine.model.errors import UsageError

if TYPE_CHECKING:
    from grapevine.net.run import Started

NodeOption = Annotated[
    Path | None,
    typer.Option(
        "--node", metavar="FILE|DIR", help="Its control file or data folder. Default: GRAPEVINE_NODE, or '.'."
    ),
]
_AGO = {"s": 1, "m": 60, "h": 3_600, "d": 86_400}

# What `status` shows of a node's statistics, a line each.
_STATUS = {
    "network": ("peers", "links", "subscriptions", "carried"),
    "events": ("published", "delivered", "recovered", "given_up"),
    "waiting": ("unsent", "unconfirmed", "dropped"),
    "bytes": ("bytes_in", "bytes_out"),
}


def node(
    listen: Annotated[str | None, typer.Option(metavar="HOST:PORT", help="Where others reach it; port 0: any.")] = None,
    join: Annotated[
        list[str] | None, typer.Option(metavar="HOST:PORT", help="A node to begin with; repeatable.")
    ] = None,
    subscribe: Annotated[list[str] | None, typer.Option(metavar="TOPIC", help="Keep its events; repeatable.")] = None,
    system: Annotated[
        str | None, typer.Option(help="vitis, spidercast or trellis (any node publishes anywhere), or rappel (feeds).")
    ] = None,
    data_dir: Annotated[
        Path | None, typer.Option(metavar="DIR", help="Keeps identity, subscriptions and events. Default: they end.")
    ] = None,
    control: Annotated[
        str | None,
        typer.Option(metavar="HOST:PORT|unix:PATH", help="Where programs reach it. Default: a free port of 127.0.0.1."),
    ] = None,
    control_file: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help="Url and token for them. Default: control.json in the data folder."),
    ] = None,
    mqtt: Annotated[
        str | None,
        typer.Option(metavar="HOST:PORT", help="Be a broker for clients of MQTT 5 and 3.1.1 there. Default: none."),
    ] = None,
    origin: Annotated[
        list[str] | None,
        typer.Option(metavar="URL", help="Pages of this origin may use the control server with its token; repeatable."),
    ] = None,
    network: Annotated[str | None, typer.Option(help="Nodes of other networks are refused.")] = None,
    announce: Annotated[str | None, typer.Option(metavar="IP", help="The address that others are told.")] = None,
    diary: Annotated[Path | None, typer.Option(metavar="DIR", help="Write what `grapevine collect` reads.")] = None,
    set_: Annotated[
        list[str] | None,
        typer.Option("--set", metavar="KEY=VALUE", help="A setting of node, system, retention or door; repeatable."),
    ] = None,
    config: Annotated[
        Path | None, typer.Option(metavar="FILE", help="node.toml with the same keys; flags win.")
    ] = None,
    log: Annotated[
        str | None,
        typer.Option(
            metavar="plain|json", help="What it says on the error stream: lines for people (default), or JSON lines."
        ),
    ] = None,
    log_level: Annotated[str | None, typer.Option(help="What it says there: debug, info, warning or error.")] = None,
    json: JsonOption = False,
) -> None:
    """Run a live node until Ctrl-C or SIGTERM. It prints where it listens, who it is, and where programs find it."""
    from grapevine.model.log import log_to_stderr
    from grapevine.net.options import read_options
    from grapevine.net.run import run_node

    paths = {"data_dir": data_dir, "diary": diary, "control_file": control_file}
    flags = {"listen": listen, "join": join or None, "subscribe": subscribe or None, "system": system}
    flags |= {"network": network, "announce": announce, "control": control, "mqtt": mqtt, "origin": origin or None}
    flags |= {name: None if path is None else str(path) for name, path in paths.items()}
    flags |= {"log": log, "log_level": log_level}
    options = read_options(config, flags, set_ or [])
    log_to_stderr(options.log, options.log_level)
    run_node(options, lambda started: _print_started(started, json=json))


def _print_started(started: Started, *, json: bool) -> None:
    """Say where a node listens and how programs reach it; whoever started the process may wait for these lines."""
    if json:
        about = {"peer": started.peer, "endpoint": started.endpoint, "topics": started.topics}
        about |= {} if started.mqtt is None else {"mqtt": started.mqtt}
        print_json(about | {"control": started.control_url, "control_file": str(started.control_file)})
    else:
        lines = {
            "listens": f"{started.endpoint}    others: grapevine node --join {started.endpoint}",
            "peer": started.peer,
            "control": f"{started.control_url}    programs: --node {started.control_file}",
        }
        if started.mqtt is not None:
            lines["mqtt"] = f"{started.mqtt}    clients: mosquitto_sub -h HOST -p PORT -t TOPIC"
        for name, text in lines.items():
            out.print(f"[bold]{name:8}[/] {escape(text)}", highlight=False, soft_wrap=True)
    sys.stdout.flush()


def status(node: NodeOption = None, json: JsonOption = False) -> None:
    """Say how a node of this machine is: what is wrong, if anything (exit code 1), and what it has done."""
    from grapevine.net.remote import Remote

    stats = Remote.find(node).stats()
    if json:
        print_json(stats)
    else:
        out.print(f"[bold]peer[/]     {escape(stats['peer'])} at {escape(stats['endpoint'])}", highlight=False)
        for name, sentence in stats["conditions"].items():
            out.print(f"[bold red]{name:8}[/] {escape(sentence)}", highlight=False, soft_wrap=True)
        if not stats["conditions"]:
            out.print("[bold]health[/]   ok")
        for name, keys in _STATUS.items():
            values = ", ".join(f"{stats[key]:,} {key.replace('_', ' ')}" for key in keys)
            out.print(f"[bold]{name:8}[/] {values}", highlight=False)
    if stats["conditions"]:
        raise typer.Exit(1)


def publish(
    topic: Annotated[str, typer.Argument(help="The topic.")],
    payload: Annotated[str | None, typer.Argument(help="The payload, as text; '-' or nothing: standard input.")] = None,
    node: NodeOption = None,
    acks: Annotated[
        int, typer.Option(min=0, help="Wait until so many other nodes of the topic have it on their disks.")
    ] = 0,
    timeout: Annotated[
        float | None, typer.Option(min=0, help="Seconds to wait for a path to others, and for --acks.")
    ] = None,
    json: JsonOption = False,
) -> None:
    """Publish an event through a node of this machine. At the end it is on that node's disk, and handed on."""
    from grapevine.net.remote import Remote

    remote = Remote.find(node)
    content = sys.stdin.buffer.read() if payload in (None, "-") else str(payload).encode("utf-8", "surrogateescape")
    done = remote.publish(topic, content, acks=acks, timeout=timeout)
    if json:
        print_json(done)
        return
    out.print(f"event {done['sequence']} of {escape(done['publisher'])} in {escape(topic)}", highlight=False)


def subscribe(
    topics: Annotated[list[str], typer.Argument(metavar="TOPIC …", help="The topics.")],
    node: NodeOption = None,
    since: Annotated[
        str | None,
        typer.Option(
            metavar="WHEN",
            help="Also what came since then: beginning, 90s, 10m, 2h, 1d ago, seconds, or 2026-01-31T12:00.",
        ),
    ] = None,
    count: Annotated[int | None, typer.Option("--count", "-n", min=1, help="End after so many events.")] = None,
    policy: Annotated[str, typer.Option(help="If this reads too slowly: block, drop-oldest or drop-new.")] = "block",
    name: Annotated[
        str | None,
        typer.Option(help="Read under this name: who reads under it next goes on behind the last event printed."),
    ] = None,
    arrival: Annotated[
        bool, typer.Option("--arrival", help="In the order of arrival; otherwise in that of each publisher's numbers.")
    ] = False,
    json: JsonOption = False,
) -> None:
    """Print events as they come, through a node of this machine: the payload, or lines of JSON with all there is."""
    from grapevine.net.remote import Remote

    remote = Remote.find(node)
    seen = 0
    try:
        when = "now" if since is None else parse_when(since)
        for line in remote.subscribe(topics, since=when, policy=policy, name=name, ordered=not arrival):
            if "subscribed" in line:
                err.print(f"subscribed to {escape(', '.join(line['subscribed']))}")
                continue
            if json:
                sys.stdout.write(json_.dumps(line, ensure_ascii=False) + "\n")
            elif "lagged" in line:
                err.print(f"{line['lagged']} events of {escape(line['topic'])} were dropped: this reader was too slow")
            elif "reason" in line:
                err.print(_told_gap(line), highlight=False)
            else:
                sys.stdout.write(_plain(line, named=len(topics) > 1))
            sys.stdout.flush()
            if name is not None:
                remote.ack(name, line)
            seen += "payload" in line
            if seen == count:
                return
    except Stopped:
        return
    err.print("the node has stopped")


def _told_gap(line: dict[str, Any]) -> str:
    """Events that a reader was owed and will not get, as a sentence."""
    many = f"events {line['first']} to {line['last']}" if line["first"] < line["last"] else f"event {line['first']}"
    whose = f"{escape(line['publisher'][:8])} in {escape(line['topic'])}"
    return f"{many} of {whose} cannot be had any more ({line['reason']})"


def _plain(line: dict[str, Any], *, named: bool) -> str:
    """An event as a line of text: its payload, and before it the topic where several are read (`named`)."""
    text = line.get("text", f"base64:{line['payload']}")
    return f"{line['topic']}\t{text}\n" if named else f"{text}\n"


def parse_when(text: str) -> float | str:
    """A time in seconds since 1970: given so, as a duration before now (`90s`, `10m`, `2h`, `1d`), or as an ISO date;
    or `beginning`, which stays. UsageError for anything else.
    """
    if text == "beginning":
        return text
    if ago := re.fullmatch(r"(\d+(?:\.\d+)?)([smhd])", text):
        return time.time() - float(ago[1]) * _AGO[ago[2]]
    if re.fullmatch(r"\d+(?:\.\d+)?", text):
        return float(text)
    try:
        return datetime.fromisoformat(text).timestamp()
    except ValueError:
        raise UsageError(
            f"--since {text}: give beginning, 90s, 10m, 2h, 1d, seconds since 1970, or a date like 2026-01-31"
        ) from None
