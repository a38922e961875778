"""Mistakes of an experiment file, gathered with the line and the key of each."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, TypeVar

from grapevine.experiment.lines import Path as Key
from grapevine.experiment.lines import nearest_line
from grapevine.model.config import Config, field_types, value_mistake
from grapevine.model.errors import UsageError
from grapevine.model.settings import unknown_names, with_none

Settings = TypeVar("Settings", bound=Config)


class Mistakes:
    """Notes what is wrong with a parsed file, and goes on. `lines` are those of its keys (`lines.key_lines`)."""

    def __init__(self, lines: dict[Key, int]) -> None:
        self._lines = lines
        self.mistakes: list[tuple[int, str]] = []

    def note(self, key: Key, said: str) -> None:
        """Add a mistake, with the line of the key or of the nearest table around it."""
        named = ".".join(str(part) for part in key if not isinstance(part, int))
        self.mistakes.append((nearest_line(self._lines, key), f"{named}: {said}" if named else said))

    def known(self, where: Key, table: dict[str, Any], allowed: Iterable[str], *, owner: str) -> None:
        """Note every key that is not allowed; `owner` is whose keys they are."""
        for key in table:
            for said in unknown_names(owner, [key], allowed, noun="key"):
                self.note((*where, key), said)

    def check_config(
        self, where: Key, kind: type[Config], parameters: dict[str, Any], *, owner: str, also: Iterable[str] = ()
    ) -> dict[str, Any]:
        """The parameters with None for `none`; what is wrong with names, types and limits is noted, for every value of
        a grid. What fields contradict in each other is found when the runs are planned. `also` are the other keys of
        the same table."""
        self.known(where, parameters, [*field_types(kind), *also], owner=owner)
        parameters = with_none(kind, parameters)
        for key in [key for key in parameters if key in field_types(kind)]:
            values = parameters[key] if isinstance(parameters[key], list) else [parameters[key]]
            if not values:
                self.note((*where, key), "an empty list is no grid")
            for value in values:
                if said := value_mistake(kind, key, value):
                    self.note((*where, key), f"{value!r}: {said}")
        return parameters

    def made(self, where: Key, kind: type[Settings], settings: dict[str, Any]) -> Settings | None:
        """The config of values that are each valid by itself; what they contradict in each other is noted."""
        try:
            return kind(**settings)
        except UsageError as error:
            self.note(where, str(error))
            return None
