"""Settings as users write them, `key=value` texts, TOML tables and Python keywords, checked against a config type.

This is the one place that reads them, so that a mistake is answered in the same words wherever it was made: what was
given, what is allowed, and the nearest name if one is close. Mistakes are gathered, so that all are told at once.

    vitis has no parameter tabel_size; it has sample_size, max_age, table_size; did you mean table_size?
    table_size='many': needs a whole number
    --set table_size=3: needs at least 4

`none` stands for no value, in texts and in TOML (which has no null), for the fields that may be without one.
"""

from __future__ import annotations

import difflib
from collections.abc import Iterable, Mapping
from typing import Any, NamedTuple, TypeVar

from grapevine.model.arguments import plain
from grapevine.model.config import Config, field_types, optional_fields, value_mistake, wanted
from grapevine.model.errors import UsageError

NONE = "none"
Made = TypeVar("Made", bound=Config)


class Checked(NamedTuple):
    """The values that are allowed, by name, and a sentence for each that is not."""

    values: dict[str, Any]
    mistakes: list[str]

    def or_raise(self) -> dict[str, Any]:
        """The values; UsageError with all mistakes if there is one."""
        if self.mistakes:
            raise UsageError("; ".join(self.mistakes))
        return self.values


def make(config: type[Made], values: Mapping[str, Any], *, owner: str, beside: Iterable[str] = ()) -> Made:
    """The configuration with these values, which come from Python; UsageError with everything that is wrong.

    `owner` is whose parameters they are, as the answer to an unknown name calls it: `vitis`, `a node`. `beside` are
    names that can be given in the same place, and may have been meant.
    """
    return config(**check_values(config, values, owner=owner, beside=beside).or_raise())


def check_values(config: type[Config], values: Mapping[str, Any], *, owner: str, beside: Iterable[str] = ()) -> Checked:
    """Names, types and limits of values from Python or, after `with_none`, from TOML. What the fields contradict in
    each other is found when the config is made."""
    found, mistakes = {}, unknown_names(owner, values, field_types(config), beside=beside)
    for name in [name for name in values if name in field_types(config)]:
        value = _as_kept(field_types(config)[name], values[name])
        if said := value_mistake(config, name, value):
            mistakes.append(f"{name}={values[name]!r}: {said}")
        else:
            found[name] = value
    return Checked(found, mistakes)


def _as_kept(kind: type, value: Any) -> Any:
    """numpy's numbers as Python's; a whole number for a float is that float, so that 5 and 5.0 are one setting, with
    one run id."""
    value = plain(value)
    if kind is float and type(value) is int:
        try:
            return float(value)
        except OverflowError:
            return value  # and will be refused
    return value


def parse_texts(texts: Iterable[str], *configs: type[Config], owner: str, flag: str = "--set") -> Checked:
    """`key=value` texts as values of the config that has such a field; of texts with the same key the last counts.

    `flag` is the option that they were given with, for the answers. No two of the configs may share a name.
    """
    owners = {name: config for config in configs for name in field_types(config)}
    found, mistakes, unknown = {}, [], []
    for text in texts:
        name, equals, value = text.partition("=")
        if not equals:
            mistakes.append(f"{flag} {text}: write it as key=value; {owner} has {', '.join(owners)}")
        elif name not in owners:
            unknown.append(name)
        else:
            parsed, said = _parse(owners[name], name, value)
            if said:
                mistakes.append(f"{flag} {text}: {said}")
            else:
                found[name] = parsed
    return Checked(found, mistakes + unknown_names(owner, unknown, owners))


def with_none(config: type[Config], values: Mapping[str, Any]) -> dict[str, Any]:
    """Values of a TOML table, with None for `none` where the field may be without a value; in lists (grids), too."""

    def read(name: str, value: Any) -> Any:
        if isinstance(value, list):
            return [read(name, part) for part in value]
        return None if value == NONE and name in optional_fields(config) else value

    return {name: read(name, value) for name, value in values.items()}


def unknown_names(
    owner: str, names: Iterable[Any], known: Iterable[str], *, noun: str = "parameter", beside: Iterable[str] = ()
) -> list[str]:
    """One sentence about all names that are not known, with those that are and the nearest, also of those `beside`
    them; none if all are known."""
    known = list(known)
    unknown = [str(name) for name in names if name not in known]
    if not unknown:
        return []
    near = [close for name in unknown for close in difflib.get_close_matches(name, [*known, *beside], n=1)]
    said = f"{owner} has no {noun} {', '.join(unknown)}; it has {', '.join(known) or 'none'}"
    return [f"{said}; did you mean {', '.join(dict.fromkeys(near))}?" if near else said]


def none_of(value: Any, known: Iterable[str], what: str = "") -> str:
    """What to say of a value that is none of the known names: these, and the nearest of them. `what` says what it was
    given for, e.g. `system `."""
    known = list(known)
    said = f"{what}{value!r}: choose one of {', '.join(known)}"
    near = difflib.get_close_matches(str(value), known, n=1)
    return f"{said}; did you mean {near[0]}?" if near else said


def _parse(config: type[Config], name: str, text: str) -> tuple[Any, str | None]:
    """The value that a text stands for, and what is wrong with it."""
    kind = field_types(config)[name]
    if text.lower() == NONE and name in optional_fields(config):
        return None, None
    if kind is bool and text.lower() in ("true", "false"):
        return text.lower() == "true", None
    try:
        value = text if kind is bool else kind(text)
    except ValueError:
        return text, f"needs {wanted(config, name)}"
    return value, value_mistake(config, name, value)
