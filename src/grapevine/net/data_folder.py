"""A node's folder: its key, its events and subscriptions, and peers that it has met. One process at a time."""

from __future__ import annotations

import contextlib
import fcntl
import tempfile
from collections.abc import AsyncIterator, Iterator
from dataclasses import dataclass
from pathlib import Path

import msgspec

from grapevine.model.errors import PeerError, UsageError
from grapevine.net.contacts import Contact, Contacts
from grapevine.net.event_file import Retention
from grapevine.net.identity import Identity
from grapevine.net.private_files import make_private_file
from grapevine.net.store import Store
from grapevine.net.surroundings import REAL_WORLD, Surroundings

LOCK_FILE = "lock"
CONTACTS_FILE = "contacts"
_REMEMBERED = 200  # peers, from one session to the next


@dataclass(frozen=True, slots=True)
class DataFolder:
    """The folder, opened and locked. Its key is who the node is: a copy of the folder must not run beside it."""

    path: Path
    identity: Identity
    store: Store
    is_kept: bool  # beyond the process; otherwise it is a temporary folder, and nothing is remembered in it

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
            identity = Identity.open(folder, surroundings.new_key)
            stack.enter_context(_locked(folder / LOCK_FILE))
            work = surroundings.store_work()
            async with await Store.open(folder, retention, synced=synced, work=work) as store:
                yield cls(folder, identity, store, is_kept)

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
