"""Output folders that appear whole or not at all, and are replaced whole or not at all.

**The manifest is the commit.** It is written last; a folder without `manifest.json` is not there, and readers say so.
Until it is written, what was there before can be read as before. There are two ways to it (`Location`, `Writer` and the
mark `_writing` are those of `model/location.py` and `model/drafts.py`):

Where a rename is one step (paths, `hdfs://`): the rename makes manifest and tables appear together.

    PARENT/.NAME.partial-WRITER       the draft, until it is renamed to NAME
    PARENT/.NAME.replaced-WRITER      what `--force` replaces, from just before that rename until just after it

Elsewhere (object stores, on which a rename is copies and deletions): nothing is renamed, the manifest leads to a
generation. Stores may show a file before all of it is there.

    NAME/_generation-WRITER           the draft, which keeps its name for good; tables and a manifest of its own
    NAME/_manifest.json               that manifest once more, with the name of the generation, only for as long as …
    NAME/manifest.json                … the same takes to be written: the commit

What holds at any moment, whoever is killed when:

1. A manifest leads to tables that are complete, and were made by one run.
2. An output that was there stays readable until the commit of the run that replaces it. (Between the two renames of
   the first way it has no name for an instant; a run that was killed there is mended by the next that writes there. The
   tables of a sweep, which are several, have no manifest for the instant in which they are renamed one by one.)
3. Only its writer commits a draft, and only while the draft has its mark.
4. A draft, a replaced folder or an older generation is removed by its own run, or else by the next run that writes
   there and can tell that its writer is gone: at once on the same machine, after a day from another one.
5. Of two runs that write to one target at the same time, the first commits, and the second fails with a sentence when
   it is about to: the manifest is not the one that it found when it began. Where nothing compares and writes in one
   step there is a moment in which both pass; then the later one counts, and what the other left is removed by the next
   run. At no time does a manifest lead to tables of two runs.
6. A reader that began before a replacement finishes, or fails because the old tables are gone. Only where folders are
   renamed, so that old and new tables have the same names, may it find some of each; runs that write are told apart,
   a reader has to be started again.

What is not promised: that a writer that began more than a day ago and stalls, between looking for its mark and its
commit, for as long as another machine takes to remove its draft, notices that.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from grapevine.model.arguments import flag
from grapevine.model.errors import UsageError
from grapevine.model.generations import Generation
from grapevine.model.location import Location, as_location, renames_at_once
from grapevine.model.output import Output
from grapevine.model.renames import MovedTables, RenamedFolder


@contextmanager
def new_folder(target: Location, *, kind: str, force: bool) -> Iterator[Location]:
    """Yield a folder to write a `kind` into; it becomes `target` when the block ends well, and vanishes otherwise.

    UsageError if `target` exists and `force` is not given, or holds anything but a complete folder of this kind, or
    cannot be written, or was written by another run meanwhile. The block writes the manifest last.
    """
    target, force = as_location(target).resolve(), flag("force", force)
    if not target.name:
        raise UsageError(f"{target}: is the root of a file system; give a folder below it")
    if renames_at_once(target):
        output: Output = RenamedFolder(target, kind, force=force)
    else:
        output = Generation(target, kind, force=force)
    with _making(output) as draft:
        yield draft


@contextmanager
def new_tables(folder: Location, *, kind: str) -> Iterator[Location]:
    """Yield a folder to write tables and a manifest into, which replace those of `folder` when the block ends well.

    Everything else in `folder`, which is there already, stays: for sweeps, whose runs are outputs of their own below
    it. Errors are those of `new_folder`.
    """
    folder = folder.resolve()
    if renames_at_once(folder):
        output: Output = MovedTables(folder, kind)
    else:
        output = Generation(folder, kind, force=True, only_tables=True)
    with _making(output) as draft:
        yield draft


@contextmanager
def _making(output: Output) -> Iterator[Location]:
    try:
        with one_sentence(output.target):
            output.begin()
        yield output.draft
        with one_sentence(output.target):
            output.commit()
    finally:
        output.close()


@contextmanager
def one_sentence(target: Location) -> Iterator[None]:
    """Turn an OSError of the block into a UsageError that says that the target cannot be written."""
    try:
        yield
    except OSError as error:
        raise UsageError(f"{target}: cannot be written ({error.strerror}); choose another") from None
