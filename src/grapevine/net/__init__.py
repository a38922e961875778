"""A node on real sockets: what lies between a sans-IO peer and the machine it runs on. The only user of asyncio.

`Node` is what applications use, and `assembly` puts its parts together. Below it: `transport` carries bytes (over TLS,
or in memory), `connections` has the connections, `host` drives the peer, `topics` says what the node has to do with
which topic, `publishing` and `arrivals` take events out and in, `recovery` brings back what was missed, `store` keeps
events, `diary` what happened, `wire` makes frames of messages, `identity` says who is at the other end. Around it:
`run` and `control` make a process of a node, `cluster` a network of processes.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from grapevine.net.envelope import Event, Gap
    from grapevine.net.inbox import Inbox, Lagged
    from grapevine.net.node import Node, NoPath, NotConfirmed
    from grapevine.net.reader import Reader
    from grapevine.net.verdicts import Verdict

__all__ = ["Event", "Gap", "Inbox", "Lagged", "NoPath", "Node", "NotConfirmed", "Reader", "Verdict"]

_HOMES = {  # imported when they are first used: a command that talks to a node in another process needs none of it
    "Event": "envelope",
    "Gap": "envelope",
    "Inbox": "inbox",
    "Lagged": "inbox",
    "NoPath": "node",
    "Node": "node",
    "NotConfirmed": "node",
    "Reader": "reader",
    "Verdict": "verdicts",
}


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    globals()[name] = found = getattr(import_module(f"{__name__}.{_HOMES[name]}"), name)
    return found
