"""What hosts say to each other, whatever system their peers run: who and where they are, and what they possess.

These travel beside the messages of a system, over the same connections and in the same frames (`wire`). On the wire a
field has a position and no name: a name may change, a position may not, and what is new comes last with a default.
Every field may hold anything that its type allows: the receiver checks it, and blames the sender (`conduct`) where no
honest node sends such a thing.
"""

from __future__ import annotations

from grapevine.net.contacts import Contact
from grapevine.systems.contracts.peer import Address, Message

Gap = tuple[int, int]  # sequences from … to, both included, all of which are missing
# Topic, source (`stamp`), last sequence seen, what is missing below, and the content of that last event (`Account`).
Possession = tuple[int, bytes, int, tuple[Gap, ...], bytes]


class Hello(Message, frozen=True):
    """The first frame of either side, sent as soon as the transport has proven who the other end is.

    The receiver takes nothing before it, and one only. It refuses the connection, without blame, if network or system
    are others than its own, or if the contact is not that of the proven peer.
    """

    network: str  # the name of the network: those of different names never mix
    system: str  # what peers run, e.g. "vitis": the messages of another would be garbage
    session: int  # drawn when the node was opened: a second connection of the same session is one too many
    contact: Contact  # where the sender is found, signed by it; the receiver remembers it and tells others


class Farewell(Message, frozen=True):
    """I close this connection in good order: I am alive, and no link of yours is lost for a reason.

    The last frame that a side sends. Without it the receiver takes the end of the connection for a crash, and tells its
    peer that the sender is unreachable.
    """

    reason: str  # for people; nothing is decided by it


class Introduce(Message, frozen=True):
    """Where peers are found: those that the sender's next message names, or one that the receiver has sought.

    The receiver learns the first 64 of them. One that its owner did not sign is blamed on the sender, and ends it.
    """

    contacts: tuple[Contact, ...]


class Seek(Message, frozen=True):
    """Do you know where this peer is? Sent to three neighbours by whoever has only an address.

    Who knows answers with `Introduce`; who does not is silent, and the sender gives up after a second.
    """

    node: Address


class Digest(Message, frozen=True):
    """What I possess of topics, as hashes; sent every `recover_every_s` to a random partner of each topic.

    The receiver answers with `Holdings` about the topics in which its own hash is another, and is silent about those
    that are equal or that it does not keep.
    """

    topics: tuple[tuple[int, int], ...]  # topic, and 64 bits of a hash (`Ledger.digest`)


class Holdings(Message, frozen=True):
    """What I possess of topics in which our digests differ: the answer to a `Digest`, or to another `Holdings`.

    It is a claim, and not signed. The receiver may ask this sender for what it claims to have (`Want`), and believes
    nothing else of it. If the receiver has more, it answers with its own holdings, once (`answer`).
    """

    possessed: tuple[Possession, ...]  # rows that fit into a frame; the receiver reads 1,000 of them
    topics: tuple[int, ...]  # that these rows are all about, of some there may be none; empty if there are more parts
    answer: bool  # it answers Holdings of the receiver's, and is not to be answered by Holdings again
    clock_ms: int = 0  # what the sender's clock of arrivals showed: a `Want` says by it what is too old


class Confirm(Message, frozen=True):
    """Have you these events of mine on your disk? Sent by a publisher that wants to know (`confirmations`) to those
    with whom it exchanges the topic's events, again and again until it knows.

    The receiver answers with `Confirmed` about those that it has, now or when they are written.
    """

    topic: int
    epoch: int  # of the sender's
    sequences: tuple[int, ...]  # of the sender's own stream; the receiver reads 500


class Confirmed(Message, frozen=True):
    """These events of yours are on my disk: the answer to a `Confirm`. Nothing proves it."""

    topic: int
    epoch: int
    sequences: tuple[int, ...]


class Want(Message, frozen=True):
    """Send me what you keep of one stream: what comes after `after`, what I miss before it, and of what lies up to
    `before` the events that came to you at `since_ms` or later, by your own clock.

    The receiver answers with one `Kept`, as much as fits, also if it has nothing. It serves a sender one question at a
    time and lets 64 wait. A source that is none is garbage.
    """

    topic: int
    source: bytes
    after: int  # the last sequence that the sender has seen; 0: none, and then `since_ms` counts for all of the stream
    missing: tuple[Gap, ...]  # below `after`; the receiver reads 500 gaps
    since_ms: int  # by the clock of the receiver's last `clock_ms`; -1: the sender knows none yet, and wants to be told
    before: int = 0  # nobody has told the sender yet what it wants up to here


class Kept(Message, frozen=True):
    """Events of one stream that were wanted. Taken only from whom this was asked, once; otherwise ignored.

    If none of what was missing came, that counts towards giving it up (`patience`).
    """

    topic: int
    source: bytes
    events: tuple[tuple[int, bytes], ...]  # sequence and envelope; each is checked like any other event
    over: int = 0  # up to here nothing is to be had: the sender removed it, or it came there before `since_ms`
    older: int = 0  # so many of them, at the beginning, are too old: they only show that the stream exists, and how far
    clock_ms: int = 0  # as in `Holdings`


class Evidence(Message, frozen=True):
    """A publisher contradicts itself in this topic, and here are two events of its that show it (`equivocation`).

    Sent to a partner that compares the stream and does not know. The receiver checks both signatures, and blames the
    sender if they are none, or show nothing. It keeps the first evidence of a stream.
    """

    topic: int
    source: bytes
    first: int
    first_envelope: bytes
    second: int
    second_envelope: bytes
