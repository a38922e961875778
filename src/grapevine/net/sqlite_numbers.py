"""Topics as SQLite counts: it has signed 64 bits, and topics, which are hashes, may have all 64.

They are stored in two's complement. Nothing compares them but for equality.
"""

from __future__ import annotations


def signed(topic: int) -> int:
    """The number under which a topic is stored."""
    return topic - 2**64 if topic >= 2**63 else topic


def unsigned(stored: int) -> int:
    """The topic that is stored under this number."""
    return stored + 2**64 if stored < 0 else stored
