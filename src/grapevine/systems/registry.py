"""All systems by name: one record each, with the facets that it has.

A system is the protocol of one paper. It may exist in three facets, each a class with parameters of its own:

- `rounds` (`contracts/rounds`): compiled rules over the arrays of a whole network, a round at a time; for scale.
- `peers` (`contracts/peer`): sans-IO peers, message by message in virtual time; for message-level truth.
- `live` (`contracts/live`): the same peers on real connections.

The first two are drivers of a simulation. A package below `grapevine.systems` ends in `register(System(...))`, and is
found here without being named anywhere else; it names facets by module and class, and they are imported when somebody
asks for them: a live node wants no rounds, nor what these import. A program calls `register` for a system of its own,
before it names it. Other distributions offer systems through the entry-point group `grapevine.systems`: each entry
leads to a `System`, or to a module that registers one. An entry that cannot be loaded harms nobody else; `broken()`
tells what went wrong with it.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from importlib import import_module
from importlib.metadata import entry_points
from pkgutil import iter_modules
from typing import TYPE_CHECKING, Any

from grapevine.model.config import Config
from grapevine.model.errors import UsageError
from grapevine.model.settings import none_of

if TYPE_CHECKING:  # what facets derive from is imported with them
    from grapevine.metrics.measured import MeasuredTable
    from grapevine.systems.contracts.live import LiveSystem
    from grapevine.systems.contracts.peer import PeerSystem
    from grapevine.systems.contracts.rounds import RoundSystem

    Facet = type[RoundSystem] | type[PeerSystem[Any]] | type[LiveSystem]

FACETS = "rounds", "peers", "live"
DRIVERS = "rounds", "peers"  # facets that run a simulation; the first that a system has is its default
ENTRY_POINTS = "grapevine.systems"


@dataclass(frozen=True, slots=True, kw_only=True)
class System:
    """What there is to know of a system before one of its facets is made.

    A facet is a class, or where it is to be imported from when it is asked for: `"package.module:Class"`.
    """

    name: str  # as it is called in commands, experiments and tables
    paper: str  # authors, venue and year
    summary: str  # the idea in one line
    rounds: type[RoundSystem] | str | None = None
    peers: type[PeerSystem[Any]] | str | None = None
    live: type[LiveSystem] | str | None = None

    @property
    def facet_names(self) -> list[str]:
        """What it has of `FACETS`; nothing is imported."""
        return [name for name in FACETS if getattr(self, name) is not None]

    @property
    def facets(self) -> dict[str, Facet]:
        """The facets that it has, by name."""
        return {name: self.facet(name) for name in self.facet_names}

    @property
    def drivers(self) -> list[str]:
        """By what it can be simulated; the first is the default."""
        return [name for name in DRIVERS if name in self.facet_names]

    @property
    def needs(self) -> str:
        """What it knows of the whole network that its nodes do not find out by messages, in words; empty: nothing.

        No network could run a system that needs something as it is: its numbers are a bound for the others.
        """
        return next((needs for facet in self.facets.values() if (needs := getattr(facet, "needs", ""))), "")

    def facet(self, name: str) -> Any:
        """The class of a facet, imported if need be, with its own tables and metrics declared; UsageError if the system
        has no such facet."""
        if name not in self.facet_names:
            raise UsageError(f"{self.name} has no {name}; it has {', '.join(self.facet_names)}")
        found = getattr(self, name)
        if isinstance(found, str):
            module, _, attribute = found.partition(":")
            found = getattr(import_module(module), attribute)
        _declare_own(found)
        return found

    def config_type(self, facet: str) -> type[Config]:
        """The parameters of a facet; UsageError if the system has no such facet."""
        found: type[Config] = self.facet(facet).config_type
        return found

    def own_tables(self, facet: str) -> tuple[MeasuredTable, ...]:
        """The tables that only this facet of the system fills; none if there is no such facet."""
        return getattr(self.facet(facet), "own_tables", ()) if facet in self.facet_names else ()

    def round_facet(self) -> type[RoundSystem]:
        """Its rounds; UsageError if it has none."""
        found: type[RoundSystem] = self.facet("rounds")
        return found

    def peer_facet(self) -> type[PeerSystem[Any]]:
        """Its peers in virtual time; UsageError if it has none."""
        found: type[PeerSystem[Any]] = self.facet("peers")
        return found

    def live_facet(self) -> type[LiveSystem]:
        """Its peers on connections; UsageError if it has none."""
        found: type[LiveSystem] = self.facet("live")
        return found


def _declare_own(facet: Facet) -> None:
    """Have what only this facet tells measured, and in the catalogue. Once or often makes no difference."""
    tables, metrics = getattr(facet, "own_tables", ()), getattr(facet, "own_findings", ())
    if tables:
        from grapevine.metrics.measured import declare  # here, since tables need what a live node does without

        for measured in tables:
            declare(measured)
    if metrics:
        from grapevine.metrics.findings import finding

        for metric in metrics:
            finding(metric)


_registered: dict[str, System] = {}
_broken: dict[str, str] = {}
_offered: set[str] = set()  # names of systems that other distributions brought
_loaded: list[bool] = []  # not empty: packages and entry points have been looked for


def register(system: System) -> System:
    """Make a system known. Called by the last lines of its package, or by a program that brings one.

    UsageError if another one has its name. The same one may come again with classes that were made anew, as when a cell
    of a notebook is run once more: the newer one counts.
    """
    if not system.facet_names:
        raise UsageError(f"system {system.name!r}: has no facets; give it one of {', '.join(FACETS)}")
    known = _registered.get(system.name, system)
    if known != system and _classes(known) != _classes(system):
        raise UsageError(f"system {system.name!r}: there is one of this name already ({known.paper}); choose another")
    _registered[system.name] = system
    for facet in (system.rounds, system.peers, system.live):
        if isinstance(facet, type):
            _declare_own(facet)
    return system


def _classes(system: System) -> dict[str, str]:
    """What its facets are called, and where they were defined."""
    given = {name: getattr(system, name) for name in system.facet_names}
    return {
        name: facet if isinstance(facet, str) else f"{facet.__module__}:{facet.__qualname__}"
        for name, facet in given.items()
    }


def all_systems() -> Mapping[str, System]:
    """Every system by name, with all facets imported: so whatever any of them measures is declared when this returns.

    In alphabetical order, ours first, then those of other distributions.
    """
    for name, system in list(_known().items()):
        try:
            assert system.facets
        except Exception as error:
            if name not in _offered:
                raise
            _broken[name] = f"{type(error).__name__}: {error}"
            del _registered[name]
    return _registered


def _known() -> Mapping[str, System]:
    """The same systems, but that no facet has been imported yet which is named by its module."""
    if not _loaded:
        _loaded.append(True)
        package = import_module("grapevine.systems")
        for module in sorted(found.name for found in iter_modules(package.__path__) if found.ispkg):
            import_module(f"grapevine.systems.{module}")
        ours = sorted(_registered.items())  # whichever of them was imported first
        _registered.clear()
        _registered.update(ours)
        before = set(_registered)
        for entry in sorted(entry_points(group=ENTRY_POINTS)):
            try:
                offered = entry.load()
                if isinstance(offered, System):
                    register(offered)
            except Exception as error:  # whatever a stranger's package does, the others stay usable
                _broken[entry.name] = f"{type(error).__name__}: {error}"
        _offered.update(set(_registered) - before)
    return _registered


def broken() -> Mapping[str, str]:
    """Systems of other distributions that could not be loaded, with the reason."""
    all_systems()
    return _broken


def system_named(name: str) -> System:
    """The system of this name; UsageError with all names if there is none, or with what keeps it from loading."""
    known = _known()
    if isinstance(name, str) and name in _broken:
        raise UsageError(f"system {name!r}: could not be loaded ({_broken[name]}); mend or remove its package")
    if not isinstance(name, str) or name not in known:
        raise UsageError(none_of(name, known, "system "))
    return known[name]


def systems_with(facet: str) -> list[str]:
    """The names of all systems that have this facet."""
    return [name for name, system in _known().items() if facet in system.facet_names]


def choose_driver(system: str, driver: str | None) -> str:
    """By what a simulation of the system runs: as asked for, or by its first driver.

    UsageError if the system cannot be simulated, or not by this driver.
    """
    known = system_named(system).drivers
    if not known:
        raise UsageError(f"{system} cannot be simulated: it only runs live; choose one of {', '.join(_simulated())}")
    if driver is None:
        return known[0]
    if driver not in known:
        raise UsageError(none_of(driver, known, f"driver of {system} "))
    return driver


def _simulated() -> list[str]:
    return [name for name, system in _known().items() if system.drivers]
