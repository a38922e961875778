"""A live node as people read it: who it is, where it listens, whom it is linked to, and what it has seen."""

from __future__ import annotations

from typing import TYPE_CHECKING

from grapevine.model.card import Facts, card, counted
from grapevine.model.numbers import number

if TYPE_CHECKING:
    from grapevine.net.node import Node

_MOST = 20  # neighbours and topics that are listed
_MIB = 2**20


def one_line(node: Node) -> str:
    """Node(vitis 3f2a91c4 on 127.0.0.1:7001: 3 neighbours, 2 subscriptions, 17 events delivered, 4 published)"""
    stats = node.stats()
    facts = [
        counted(stats["links"], "neighbour"),
        counted(stats["subscriptions"], "subscription"),
        f"{counted(stats['delivered'], 'event')} delivered",
        f"{stats['published']:,} published",
    ]
    return f"Node({node.parts.system.name} {node.id.short} on {_where(node)}: {', '.join(facts)})"


def as_html(node: Node) -> str:
    """The same as a card for notebooks, with the names of neighbours and topics."""
    stats = node.stats()
    about = f"{node.parts.system.name}, {node.trouble() or 'running'}"
    groups: dict[str, Facts] = {
        "Who and where": [("peer", str(node.id)), ("listens on", _where(node))],
        "Neighbours": _listed([(peer.short, endpoint) for peer, endpoint in node.neighbours()], stats["links"]),
        "Subscriptions": _listed([(topic, "") for topic in node.subscriptions], stats["subscriptions"]),
        "Events": [(name, f"{stats[name]:,}") for name in ("published", "delivered", "recovered", "unsent", "dropped")],
        "Traffic": [
            ("peers connected", f"{stats['peers']:,}"),
            ("received", f"{number(stats['bytes_in'] / _MIB)} MiB"),
            ("sent", f"{number(stats['bytes_out'] / _MIB)} MiB"),
        ],
    }
    return card(f"Node {node.id.short}", about, groups)


def _where(node: Node) -> str:
    host, port = node.endpoint
    return f"{host}:{port}" if port else "nothing yet"


def _listed(names: list[tuple[str, str]], count: int) -> Facts:
    """How many there are, and the first of them."""
    return [("in all", f"{count:,}"), *names[:_MOST], *([("…", "")] if len(names) > _MOST else [])]
