"""What all ways of making an output folder share: a draft that only its writer may commit, and what may be replaced."""

from __future__ import annotations

from abc import ABC, abstractmethod
from contextlib import suppress

from grapevine.model.drafts import WRITING, Writer, write_whole
from grapevine.model.errors import UsageError
from grapevine.model.location import Location, remove
from grapevine.model.manifest import read_manifest, stored_manifest

_FORCE = "--force (in Python, force=True)"


class Output(ABC):
    """One output being made: `begin`, then the caller writes into `draft`, perhaps `commit`, and always `close`."""

    def __init__(self, target: Location, kind: str) -> None:
        self.target = target
        self.kind = kind
        self.writer = Writer.begin()
        self.before: str | None = None  # the manifest that was there when this began

    @property
    @abstractmethod
    def draft(self) -> Location:
        """The folder to write into; later, where that is the way, the folder that readers are led to."""

    @abstractmethod
    def begin(self) -> None:
        """Remove what killed runs left, refuse what must not be replaced, and make the draft."""

    @abstractmethod
    def commit(self) -> None:
        """Let the draft be the output, in place of what was there. UsageError if that is no longer possible."""

    def is_committed(self) -> bool:
        """Whether the draft is the output now, although it has kept its name."""
        return False

    def close(self) -> None:
        """Remove the draft, unless it was committed. What cannot be removed now, as when the store has gone away, the
        next run removes; whatever made the run fail is to be told, not that."""
        try:
            with suppress(UsageError):
                if not self.is_committed():
                    remove(self.draft)
        finally:
            self.writer.finish()

    def make_draft(self) -> None:
        """Make the draft and mark it as being written."""
        self.draft.mkdir(parents=True)
        write_whole(self.draft / WRITING, "")

    def check(self) -> None:
        """To be called first in a commit: UsageError if somebody took this run for dead and removed its draft, or wrote
        to the target since it began."""
        if not (self.draft / WRITING).is_file():
            raise UsageError(f"{self.target}: another run has removed what this one wrote; run it again")
        if stored_manifest(self.target) != self.before:
            raise UsageError(came_second(self.target))


def came_second(target: Location) -> str:
    """What is said to a run that finds, when it is done, that another one has written to its target."""
    return f"{target}: another run wrote it meanwhile; what this one made was not kept"


def discard(draft: Location) -> None:
    """Remove a draft whose writer is gone, in the order that `model/drafts.py` promises."""
    (draft / WRITING).unlink(missing_ok=True)
    remove(draft)


def refuse_unless_replaceable(target: Location, kind: str, *, force: bool) -> None:
    """For something that is there: `force` replaces only what Grapevine wrote, and only by the same kind of thing."""
    if target.is_file():
        raise UsageError(f"{target}: is a file; choose another folder")
    if not force:
        raise UsageError(f"{target}: exists already; choose another folder, or replace it with {_FORCE}")
    if any(target.iterdir()):
        try:
            read_manifest(target, kind)
        except UsageError as error:
            raise UsageError(f"{_FORCE} replaces only a {kind} that Grapevine wrote; {error}") from None
