"""What hosts say to each other, whatever system their peers run: who and where they are, and what they hold."""

from __future__ import annotations

from grapevine.net.contacts import Contact
from grapevine.systems.contracts.peer import Address, Message

Gap = tuple[int, int]  # sequences from … to, both missing
Possession = tuple[int, bytes, int, tuple[Gap, ...]]  # topic, publisher's id, last sequence, what is missing below it


class Hello(Message, frozen=True):
    """The first frame of either side. Networks with different names or systems do not mix."""

    network: str
    system: str
    session: int  # drawn at the node's start: a second connection of the same session is one too many
    contact: Contact


class Farewell(Message, frozen=True):
    """I close this connection; I am not dead."""

    reason: str


class Introduce(Message, frozen=True):
    """Where those are to be found that the next message names, or that you asked for."""

    contacts: tuple[Contact, ...]


class Seek(Message, frozen=True):
    """Do you know where this one is?"""

    node: Address


class Digest(Message, frozen=True):
    """A hash of what I hold, by topic; say so if you hold something else."""

    topics: tuple[tuple[int, int], ...]


class Holdings(Message, frozen=True):
    """What I hold of topics in which we differ."""

    possessed: tuple[Possession, ...]
    topics: tuple[int, ...]  # that this is all about: of some there may be nothing
    answer: bool  # to Holdings of yours, not to be answered with Holdings again


class Want(Message, frozen=True):
    """Send me what comes after this event of a stream, and what I miss before it; nothing older than this time."""

    topic: int
    publisher: bytes
    after: int
    missing: tuple[Gap, ...]
    since_ms: int


class Kept(Message, frozen=True):
    """Events that you wanted. The first may be older than that: it shows that all before it are older still."""

    topic: int
    publisher: bytes
    events: tuple[tuple[int, bytes], ...]  # sequence, envelope
