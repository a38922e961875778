"""Who keeps a node company: says in the log who became a neighbour and who is none any more."""

from __future__ import annotations

import asyncio
import logging

from grapevine.model.card import counted
from grapevine.net.node import Node

_EVERY_S = 1.0
_NAMED = 4  # of those who come or go at once
_log = logging.getLogger(__name__)


async def tell_of_neighbours(node: Node) -> None:
    """Look every second, for ever, and log a line if something has changed."""
    before: dict[str, str] = {}
    while True:
        now = {peer.short: endpoint for peer, endpoint in node.neighbours()}
        if now.keys() != before.keys():
            stats = node.stats()
            new = {name: endpoint for name, endpoint in now.items() if name not in before}
            gone = sorted(before.keys() - now.keys())
            _log.info(
                "%s",
                sentence(new, gone, stats["links"], stats["peers"]),
                extra={
                    "fields": {"joined": new, "gone": gone, "neighbours": stats["links"], "connected": stats["peers"]}
                },
            )
        before = now
        await asyncio.sleep(_EVERY_S)


def sentence(new: dict[str, str], gone: list[str], neighbours: int, connected: int) -> str:
    """new neighbour 3f2a91c4 (127.0.0.1:7000); 1 neighbour, 1 peer connected"""
    parts = []
    if new:
        parts.append(f"new {_named([f'{name} ({endpoint})' for name, endpoint in new.items()])}")
    if gone:
        parts.append(f"no longer {_named(gone)}")
    parts.append(f"{counted(neighbours, 'neighbour')}, {counted(connected, 'peer')} connected")
    return "; ".join(parts)


def _named(names: list[str]) -> str:
    more = f" and {len(names) - _NAMED:,} more" if len(names) > _NAMED else ""
    return f"neighbour{'s' if len(names) > 1 else ''} {', '.join(names[:_NAMED])}{more}"
