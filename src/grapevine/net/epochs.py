"""In which epoch a node publishes: it goes on only in a folder that is what its last session left.

Theory. The numbers of a stream are taken from the node's own file. If the file is a copy of yesterday's, today's
numbers are taken twice: subscribers have other events under them, and take the new ones for known. No node can see from
a file alone that it is old, and others who know better may not be reachable when it publishes. So a number alone names
nothing: an event is named by its publisher, *epoch* and number, all of them signed (`stamp`). A new epoch begins at 1,
in streams of its own; it cannot collide with what an earlier one published, known or not.

A new epoch is always right. It costs others a stream for every topic that is published in, so a node goes on in its
epoch if it can prove that its file has not been replaced. The proof is a *goodbye*: a small file, which a session that
ends in good order writes when the store is closed, and which the next one removes before it publishes. It says what the
store's file was: device, inode, size, times of its last modification and of its last change, and this boot of the
machine.

    restored how                                      what no longer fits
    the folder from a backup, by any program          inode, or the time of the change, which no program can set
    events.sqlite alone, over the newer one           the same, and the size
    moved within its file system                      nothing: it is the same file, and goes on
    a snapshot of the disk or of the virtual machine  the boot, unless the machine was not started since
    after a crash, kill -9 or a loss of power         there is no goodbye

What escapes is a snapshot of a file system, taken while the node was stopped in good order, and restored before the
machine is started again. Then numbers are used twice. As soon as one of the node's own events that it does not know
comes back to it, signed by itself, it begins a new epoch (`Epochs.renew`), and what has two meanings is seen and
reported (`equivocation`).

Invariants:
1. A session publishes in one epoch until `renew`, and writes it to the store before the first number is taken.
2. A goodbye is on the disk only while no session is open. It is removed before the store is opened.
3. A folder whose key is new begins in epoch 0.
"""

from __future__ import annotations

import contextlib
from pathlib import Path

import msgspec

from grapevine.model.identity import PeerId
from grapevine.net.private_files import make_private_file
from grapevine.net.stamp import next_epoch, source_of
from grapevine.net.store import STORE_FILE, Store
from grapevine.net.surroundings import Surroundings

GOODBYE_FILE = "goodbye"


class _Goodbye(msgspec.Struct, frozen=True):
    """What the store's file was when its last session had closed it."""

    boot: str
    device: int
    inode: int
    size: int
    modified_ns: int
    changed_ns: int


class Epochs:
    """The epoch of one node, for one session. Made by `begin`."""

    def __init__(self, me: PeerId, epoch: int, store: Store, surroundings: Surroundings) -> None:
        self.epoch = epoch
        self._me, self._store, self._surroundings = me, store, surroundings

    @property
    def source(self) -> bytes:
        """Under which this node publishes now."""
        return source_of(self._me, self.epoch)

    @classmethod
    async def begin(cls, me: PeerId, store: Store, surroundings: Surroundings, *, goes_on: bool) -> Epochs:
        """The epoch of a session that begins: that of the last one if it `goes_on`, otherwise a new one."""
        before = await store.epoch(me)
        if goes_on and before is not None:
            return cls(me, before, store, surroundings)
        epochs = cls(me, before or 0, store, surroundings)
        if goes_on:
            await store.begin_epoch(me, 0)
        else:
            await epochs.renew()
        return epochs

    async def renew(self) -> None:
        """From now on this node publishes in a new epoch."""
        now_us = self._surroundings.clock_us()
        epoch = next_epoch(self.epoch, now_us // 1_000_000, self._me.full + b"%d" % now_us)
        await self._store.begin_epoch(self._me, epoch)
        self.epoch = epoch


def is_left_in_good_order(folder: Path, surroundings: Surroundings) -> bool:
    """Whether the folder's store is what its last session left. The goodbye that says so is removed."""
    path = folder / GOODBYE_FILE
    try:
        goodbye = msgspec.json.decode(path.read_bytes(), type=_Goodbye)
    except (OSError, msgspec.MsgspecError):
        goodbye = None
    path.unlink(missing_ok=True)
    return goodbye is not None and goodbye == _state(folder, surroundings)


def say_goodbye(folder: Path, surroundings: Surroundings) -> None:
    """The store is closed, and nothing of it is in a log beside it. Without a goodbye the next session begins an epoch;
    so one that cannot be written is no reason to fail."""
    state = _state(folder, surroundings)
    if state is None or (folder / f"{STORE_FILE}-wal").exists():
        return
    partial = folder / f".{GOODBYE_FILE}.partial"
    with contextlib.suppress(OSError):
        make_private_file(partial)
        partial.write_bytes(msgspec.json.encode(state))
        partial.replace(folder / GOODBYE_FILE)


def _state(folder: Path, surroundings: Surroundings) -> _Goodbye | None:
    boot = surroundings.boot()
    if not boot:
        return None  # nobody can say whether the machine was started since
    try:
        found = (folder / STORE_FILE).stat()
    except OSError:
        return None
    return _Goodbye(boot, found.st_dev, found.st_ino, found.st_size, found.st_mtime_ns, found.st_ctime_ns)
