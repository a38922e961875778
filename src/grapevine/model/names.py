"""Names as users give them, and the dense numbers that stand for them: in natural order, as an ingest numbers them."""

from __future__ import annotations

from collections.abc import Iterable

from grapevine.model.errors import UsageError

_LARGEST = 2**63  # what is no number of 64 bits is a text, as for Spark


def natural_order(names: Iterable[str]) -> list[str]:
    """Distinct names: numbers by value, then texts. `pipeline/dense.py` has the same order for Spark."""

    def key(name: str) -> tuple[bool, int, bytes]:
        try:
            value = int(name) if name.strip(" 0123456789+-") == "" else None
        except ValueError:
            value = None
        is_text = value is None or not -_LARGEST <= value < _LARGEST
        return is_text, 0 if is_text or value is None else value, name.encode()

    return sorted(set(names), key=key)


def as_texts(names: Iterable[object], what: str) -> dict[object, str]:
    """The texts by which these names are known; UsageError for one that is empty or missing, or if two names have the
    same text."""
    texts: dict[object, str] = {}
    taken: dict[str, object] = {}
    for name in names:
        if name is None or name != name:  # as in data frames
            raise UsageError(f"{what} {name}: is no name but a missing value; leave it out")
        text = str(name)
        if not text:
            raise UsageError(f"{what} '': names need at least one character")
        if taken.setdefault(text, name) != name:
            raise UsageError(f"{what} {text}: is given as {name!r} and as {taken[text]!r}; give it in one way")
        texts[name] = text
    return texts
