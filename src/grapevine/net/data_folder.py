"""A node's folder: its key, its events and subscriptions, and peers that it has met. One process at a time."""

from __future__ import annotations

import asyncio
import contextlib
import fcntl
import tempfile
from collections.abc import AsyncIterator, Iterator
from dataclasses import dataclass
from pathlib import Path

import msgspec

from grapevine.model.errors import GrapevineError, PeerError, UsageError
from grapevine.net.contacts import Contact, Contacts
from grapevine.net.epochs import Epochs, is_left_in_good_order, say_goodbye
from grapevine.net.identity import KEY_FILE, Identity
from grapevine.net.private_files import make_private_file
from grapevine.net.retention import Retention
from grapevine.net.steady_clock import SteadyClock
from grapevine.net.store import Store
from grapevine.net.surroundings import REAL_WORLD, Surroundings

LOCK_FILE = "lock"
CONTACTS_FILE = "contacts"
_REMEMBERED = 200  # peers, from one session to the next


@dataclass(frozen=True, slots=True)
class DataFolder:
    """The folder, opened and locked. Its key is who the node is: a copy of the folder must not run beside it. One that
    is put in its place is noticed, and publishes in a new epoch (`epochs`)."""

    path: Path
    identity: Identity
    store: Store
    is_kept: bool  # beyond the process; otherwise it is a temporary folder, and nothing is remembered in it
    epochs: Epochs
    clock: SteadyClock  # of arrivals
    surroundings: Surroundings

    async def note_clock(self) -> None:
        """Remember what the clock shows, for the next session: without it that would begin at what was noted before."""
        with contextlib.suppress(GrapevineError):
            await self.store.note_clock(self.clock.now_ms(), self.surroundings.clock_ms())

    @classmethod
    @contextlib.asynccontextmanager
    async def open(
        cls, folder: str | Path | None, retention: Retention, *, synced: bool, surroundings: Surroundings = REAL_WORLD
    ) -> AsyncIterator[DataFolder]:
        """The folder of a node, made if it is new; without one, a temporary folder that ends with the node.

        UsageError if another process uses it, or its key can be read by others. `synced`: commits survive a power cut.
        """
        with contextlib.ExitStack() as stack:
            is_kept = folder is not None
            if folder is None:
                folder = stack.enter_context(tempfile.TemporaryDirectory(prefix="grapevine-node-"))
                synced = False  # nothing of it outlives the process
            folder = Path(folder)
            is_new = not (folder / KEY_FILE).exists()
            identity = Identity.open(folder, surroundings.new_key)
            stack.enter_context(_locked(folder / LOCK_FILE))
            goes_on = is_left_in_good_order(folder, surroundings) or is_new
            work = surroundings.store_work()
            async with await Store.open(folder, retention, synced=synced, work=work) as store:
                epochs = await Epochs.begin(identity.id, store, surroundings, goes_on=goes_on)
                most_pause_ms = round(1e3 * retention.age_s / 2)
                passed_s = asyncio.get_running_loop().time
                clock = SteadyClock(surroundings.clock_ms, passed_s, await store.clock(), most_pause_ms)
                opened = cls(folder, identity, store, is_kept, epochs, clock, surroundings)
                await opened.note_clock()  # or a crash soon after the first start would let it go back
                try:
                    yield opened
                finally:
                    await opened.note_clock()
            if is_kept:
                say_goodbye(folder, surroundings)

    def contacts(self, known: Contacts) -> list[Contact]:
        """Peers of the last session, learnt anew; a damaged file is as good as none."""
        try:
            make_private_file(self.path / CONTACTS_FILE)
            stored = msgspec.msgpack.decode((self.path / CONTACTS_FILE).read_bytes(), type=list[Contact])
        except (OSError, msgspec.MsgspecError):
            return []
        learnt = []
        for contact in reversed(stored):
            with contextlib.suppress(PeerError):
                known.learn(contact)
                learnt.append(contact)
        return learnt

    def remember(self, known: Contacts) -> None:
        """Keep the peers used last, for the next session. Not to have them is no reason to fail."""
        if not self.is_kept:
            return
        path = self.path / CONTACTS_FILE
        partial = path.with_name(f".{path.name}.partial")
        with contextlib.suppress(OSError):
            make_private_file(partial)
            partial.write_bytes(msgspec.msgpack.encode(known.latest(_REMEMBERED)))
            partial.replace(path)


@contextlib.contextmanager
def _locked(path: Path) -> Iterator[None]:
    make_private_file(path)
    with path.open("a") as file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise UsageError(f"{path.parent}: another node uses this folder; stop it, or choose another") from None
        yield
