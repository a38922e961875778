"""Every message of every system of peers, with any content that its fields allow."""

from __future__ import annotations

from types import ModuleType, NoneType, UnionType
from typing import Any, Union, get_args, get_origin, get_type_hints

import msgspec
from hypothesis import strategies as st

from grapevine.systems.contracts.peer import messages_in
from grapevine.systems.rappel import messages as rappel
from grapevine.systems.scribe import messages as scribe

MODULES: dict[str, ModuleType] = {"rappel": rappel, "scribe": scribe}
RAPPEL = messages_in(rappel)

PLAIN: dict[Any, st.SearchStrategy[Any]] = {
    int: st.integers(-(2**63), 2**64 - 1),  # what msgpack holds
    float: st.floats(allow_nan=False),
    bool: st.booleans(),
    bytes: st.binary(),
    NoneType: st.none(),
}


def of_type(hint: Any) -> st.SearchStrategy[Any]:
    """Any value of a field's type."""
    if hint in PLAIN:
        return PLAIN[hint]
    if isinstance(hint, type) and issubclass(hint, msgspec.Struct):
        return _any_of(hint)
    parts = get_args(hint)
    if get_origin(hint) in (Union, UnionType):
        return st.one_of([of_type(part) for part in parts])
    assert get_origin(hint) is tuple, f"messages have no fields of type {hint} so far; say here how to make one"
    if parts[1:] == (...,):
        return st.lists(of_type(parts[0]), max_size=20).map(tuple)
    return st.tuples(*map(of_type, parts))


def any_message(union: Any = RAPPEL) -> st.SearchStrategy[Any]:
    """Any message of a union."""
    return st.one_of([_any_of(kind) for kind in get_args(union)])


def _any_of(kind: Any) -> st.SearchStrategy[Any]:
    hints = get_type_hints(kind)
    return st.builds(kind, *(of_type(hints[name]) for name in kind.__struct_fields__))
