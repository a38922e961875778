"""Events as JSON has them, for programs that speak HTTP."""

from __future__ import annotations

import base64
import json
from contextlib import suppress
from typing import Any

from grapevine.net.envelope import Event, Gap


def described(event: Event | Gap) -> dict[str, Any]:
    """An event as JSON has it, with `text` if the payload is one; or a gap, by its `reason`."""
    if isinstance(event, Gap):
        lost = {"publisher": str(event.publisher), "first": event.first, "last": event.last, "reason": event.reason}
        return {"topic": event.topic} | lost | epoch_of(event)
    line: dict[str, Any] = {
        "topic": event.topic,
        "publisher": str(event.publisher),
        "sequence": event.sequence,
        "time": event.time,
        "payload": base64.b64encode(event.payload).decode(),
    }
    line |= epoch_of(event)
    with suppress(UnicodeDecodeError):
        line["text"] = event.payload.decode()
    return line


def epoch_of(item: Event | Gap) -> dict[str, int]:
    """The publisher's epoch, unless it is its first."""
    return {"epoch": item.epoch} if item.epoch else {}


def line_of(content: dict[str, Any]) -> bytes:
    """A line of JSON."""
    return json.dumps(content, ensure_ascii=False).encode() + b"\n"
