"""An experiment as a TOML file: workloads, systems with parameters, a grid, seeds, plots and the claims it speaks to.

    title = "Vitis Fig. 6: routing table size"
    claims = ["V6"]
    seeds = [1, 2, 3]

    [run]                          # of runs by rounds
    rounds = 160

    [clock]                        # of runs by peers, in virtual time
    hours = 4
    recorded = ["planetlab-latency/PlanetLabData_01.tsv.gz"]    # below the folder of traces; a file per time slice

    [[workloads]]
    name = "high"
    model = "vitis-high"

    [[workloads]]
    name = "mine"
    folder = "../my-workload"      # what `grapevine workload …` wrote, from where this file lies

    [[systems]]
    system = "vitis"
    driver = "rounds"              # or "peers"; the first that the system has where it is not given
    workloads = ["high"]
    table_size = [15, 25, 35]      # a list is a grid

    [quick]                        # what `--quick` replaces
    nodes = 1000

All mistakes of a file are gathered, each with its line and key, and raised at once.
"""

from __future__ import annotations

import dataclasses
import tomllib
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from grapevine.experiment.lines import Path as Key
from grapevine.experiment.lines import key_lines
from grapevine.experiment.mistakes import Mistakes, Settings
from grapevine.metrics.catalogue import CATALOGUE, find, unknown
from grapevine.metrics.course import PROGRESS
from grapevine.metrics.measured import quantities
from grapevine.model.config import field_types, value_mistake
from grapevine.model.errors import UsageError
from grapevine.model.location import is_url
from grapevine.model.settings import none_of
from grapevine.sim.churn import ChurnConfig
from grapevine.sim.clock import ClockConfig
from grapevine.sim.round_run import RunConfig
from grapevine.synthetic import MODELS
from grapevine.synthetic.base import ChurnModel
from grapevine.systems.registry import all_systems

PLOT_KINDS = {  # what each shows, and what else may be said of it
    "series": (("x", "y"), ("log_x", "log_y", "claimed")),
    "distribution": (("quantity",), ()),
    "progress": (("y",), ("log_y", "claimed")),
}
USER_SAMPLES = "bfs", "followees", "k-core", "users"  # how `users` of a trace are chosen (pipeline/sample)
SAMPLE_KEYS = "seed_topics", "publishers"  # of the sample by subscribers (Rappel §6.1.2)
_FOLDER_KEYS = "name", "folder", "churn"
_TRACE_KEYS = "name", "trace", "path", "users", "sample", "churn", *SAMPLE_KEYS
_TOP = "title", "paper", "figure", "claims", "notes", "seeds", "run", "clock", "workloads", "systems", "plots", "quick"
_PLOT_KEYS = "title", "kind", "x_label", "y_label", "percent"  # of plots of any kind
_SYSTEM_KEYS = "system", "driver", "workloads"
_QUICK_KEYS = "nodes", "users", "rounds", "seeds", "hours", "seed_topics"


@dataclass(frozen=True, slots=True)
class WorkloadEntry:
    """A workload of an experiment: a model with parameters (lists are a grid); or a real trace, cut to `users` by one
    of `USER_SAMPLES` or, when it has parameters, to the subscribers of random topics; or a folder that is there."""

    name: str
    model: str | None = None
    parameters: dict[str, Any] = field(default_factory=dict)
    trace: str | None = None  # format
    path: str | None = None  # below the folder of traces
    users: int | None = None
    sample: str = USER_SAMPLES[0]
    folder: str | None = None  # of a workload
    churn: dict[str, Any] | None = None


@dataclass(frozen=True, slots=True)
class SystemEntry:
    """A system with parameters (lists are a grid) on some of the workloads, by one of its drivers."""

    system: str
    driver: str
    names_driver: bool  # so that plots tell the same system by two drivers apart
    workloads: tuple[str, ...]
    parameters: dict[str, Any]


@dataclass(frozen=True, slots=True)
class Experiment:
    """An experiment whose file had no mistakes: what `plan` unrolls into runs, and what the page says of it."""

    name: str
    title: str
    workloads: tuple[WorkloadEntry, ...]
    systems: tuple[SystemEntry, ...]
    run: RunConfig
    clock: ClockConfig
    recorded: tuple[str, ...] = ()  # latency matrices
    seeds: tuple[int, ...] = (1,)
    paper: str = ""
    figure: str = ""
    claims: tuple[str, ...] = ()
    notes: str = ""
    plots: tuple[dict[str, Any], ...] = ()
    quick: bool = False

    def as_dict(self) -> dict[str, Any]:
        """As the manifest stores it."""
        return dataclasses.asdict(self)


def read_experiment(path: Path, *, quick: bool = False) -> Experiment:
    """The experiment of a file; `quick` replaces what its [quick] table says (nodes, users, rounds …)."""
    try:
        text = path.read_text()
        content = tomllib.loads(text)
    except OSError as error:
        raise UsageError(f"{path}: cannot be read ({error.strerror})") from None
    except (UnicodeDecodeError, tomllib.TOMLDecodeError) as error:
        raise UsageError(f"{path}: is not valid TOML: {error}") from None
    checker = _Checker(key_lines(text), path.parent)
    made = checker.experiment(path.stem, content, quick=quick)
    if checker.mistakes:
        listed = "\n".join(f"  {path.name}:{line}: {said}" for line, said in sorted(checker.mistakes))
        count = len(checker.mistakes)
        raise UsageError(f"{path}: {count} mistake{'s' * (count > 1)}\n{listed}")
    assert made is not None
    return made


class _Checker(Mistakes):
    """Reads a parsed file, which lies in `folder`, and notes everything that is wrong with it."""

    def __init__(self, lines: dict[Key, int], folder: Path) -> None:
        super().__init__(lines)
        self.folder = folder

    def experiment(self, name: str, content: dict[str, Any], *, quick: bool) -> Experiment | None:
        self.known((), content, _TOP, owner="an experiment")
        for table in [key for key in ("run", "clock", "quick") if not isinstance(content.get(key, {}), dict)]:
            self.note((table,), f"needs to be a table, [{table}]")
            content = {key: value for key, value in content.items() if key != table}
        replaced = content.get("quick", {}) if quick else {}
        self.known(("quick",), content.get("quick", {}), _QUICK_KEYS, owner="[quick]")
        self.counts(("quick",), content.get("quick", {}))
        if not isinstance(content.get("title"), str):
            self.note(("title",), "needs a text")
        workloads = self.entries("workloads", content)
        systems = self.entries("systems", content)
        made_workloads = [self.workload(("workloads", i), entry, replaced) for i, entry in enumerate(workloads)]
        names = [entry.name for entry in made_workloads if entry]
        made_systems = [self.system(("systems", i), entry, names) for i, entry in enumerate(systems)]
        run = self.settings("run", RunConfig, content.get("run", {}), replaced, "rounds")
        clock, recorded = self.clock(content.get("clock", {}), replaced)
        seeds = replaced.get("seeds", content.get("seeds", [1]))
        if not (isinstance(seeds, list) and seeds and all(type(seed) is int and seed >= 0 for seed in seeds)):
            self.note(("seeds",), "needs a list of whole numbers of 0 or more")
        axes = _axes(workloads, systems)
        for i, plot in enumerate(content.get("plots", [])):
            self.plot(("plots", i), plot, axes)
        if self.mistakes or run is None or clock is None:
            return None
        return Experiment(
            name=name,
            title=content["title"],
            workloads=tuple(entry for entry in made_workloads if entry),
            systems=tuple(entry for entry in made_systems if entry),
            run=run,
            clock=clock,
            recorded=recorded,
            seeds=tuple(seeds),
            paper=content.get("paper", ""),
            figure=content.get("figure", ""),
            claims=tuple(content.get("claims", ())),
            notes=content.get("notes", ""),
            plots=tuple(content.get("plots", ())),
            quick=quick,
        )

    def entries(self, key: str, content: dict[str, Any]) -> list[dict[str, Any]]:
        found = content.get(key)
        if not (isinstance(found, list) and found and all(isinstance(entry, dict) for entry in found)):
            self.note((key,), f"needs at least one [[{key}]] table")
            return []
        return found

    def workload(self, where: Key, entry: dict[str, Any], replaced: dict[str, Any]) -> WorkloadEntry | None:
        name = entry.get("name")
        if not isinstance(name, str) or not name:
            self.note((*where, "name"), "every workload needs a name")
            return None
        churn = entry.get("churn")
        if churn is not None:
            churn = self.churn((*where, "churn"), churn)
        if "folder" in entry:
            self.known(where, entry, _FOLDER_KEYS, owner="a workload's folder")
            given = entry["folder"]
            if not isinstance(given, str) or is_url(given):
                self.note((*where, "folder"), f"{given!r}: needs the path of a workload's folder on this machine")
                return None
            return WorkloadEntry(name, folder=str(self.folder / given), churn=churn)
        if "trace" in entry:
            self.known(where, entry, _TRACE_KEYS, owner="a trace")
            if not isinstance(entry.get("path"), str):
                self.note((*where, "path"), "a trace needs the path of its file below the folder of traces")
            users = entry.get("users")
            cut = replaced.get("users", users) if users is not None else None
            chosen = {key: entry[key] for key in SAMPLE_KEYS if key in entry}
            if users is not None and chosen:
                self.note(where, "give users, or seed_topics and publishers: one sample")
            by = entry.get("sample", USER_SAMPLES[0])
            if by not in USER_SAMPLES:
                self.note((*where, "sample"), none_of(by, USER_SAMPLES))
            elif "sample" in entry and users is None:
                self.note((*where, "sample"), "needs users, how many of them the sample has")
            self.counts(where, entry)
            chosen |= {key: replaced[key] for key in SAMPLE_KEYS if key in chosen and key in replaced}
            return WorkloadEntry(
                name, parameters=chosen, trace=entry["trace"], path=entry.get("path"), users=cut, sample=by, churn=churn
            )
        model = entry.get("model")
        if model not in MODELS or issubclass(MODELS[model], ChurnModel):
            kinds = [key for key, kind in MODELS.items() if not issubclass(kind, ChurnModel)]
            self.note((*where, "model"), f"{none_of(model, kinds)}; or give a trace or a folder")
            return None
        parameters = {key: value for key, value in entry.items() if key not in ("name", "model", "churn")}
        if "nodes" in replaced:
            parameters["nodes"] = replaced["nodes"]
        parameters = self.check_config(where, MODELS[model], parameters, owner=model, also=("name", "model", "churn"))
        return WorkloadEntry(name, model=model, parameters=parameters, churn=churn)

    def counts(self, where: Key, table: dict[str, Any]) -> None:
        """How many users or topics a sample of a trace begins with."""
        for key in [key for key in ("users", *SAMPLE_KEYS) if key in table]:
            if type(table[key]) is not int or table[key] < 1:
                self.note((*where, key), f"{table[key]!r}: needs a whole number of 1 or more")

    def churn(self, where: Key, churn: Any) -> dict[str, Any]:
        """Sessions of a trace or of a model and how they are played, a flash crowd or a mass failure; with None for
        `none`. Lists are a grid."""
        if not isinstance(churn, dict):
            self.note(where, "needs to be a table, { … }")
            return {}
        given = [key for key in ("path", "model", "crowd", "crash") if key in churn]
        if len(given) != 1:
            self.note(where, "needs one of path (with format), model, crowd and crash")
            return churn
        playing = {key: value for key, value in churn.items() if key in field_types(ChurnConfig)}
        source = {key: value for key, value in churn.items() if key not in playing}
        playing = self.check_config(where, ChurnConfig, playing, owner="churn")
        if given == ["model"]:
            source = self.churn_model(where, source)
        else:
            named = ("path", "format") if given == ["path"] else ()
            self.known(where, source, [*named, *field_types(ChurnConfig)], owner="churn")
            for key in [key for key in named if not isinstance(source.get(key), str)]:
                self.note((*where, key), "a churn trace needs the path of its file and its format")
        if given in (["crowd"], ["crash"]):
            self.sudden(where, playing)
        return source | playing

    def churn_model(self, where: Key, source: dict[str, Any]) -> dict[str, Any]:
        """The churn model and its parameters."""
        kinds = {name: kind for name, kind in MODELS.items() if issubclass(kind, ChurnModel)}
        model = source["model"]
        if model not in kinds:
            self.note((*where, "model"), none_of(model, kinds))
            return source
        parameters = {key: value for key, value in source.items() if key != "model"}
        also = ["model", *field_types(ChurnConfig)]
        return {"model": model} | self.check_config(where, kinds[model], parameters, owner=model, also=also)

    def sudden(self, where: Key, playing: dict[str, Any]) -> None:
        """A crash or a crowd, each value of a grid, and nothing besides."""
        for key, value in playing.items():
            for text in value if isinstance(value, list) else [value]:
                if key not in ("crash", "crowd"):
                    self.note((*where, key), "says how a churn trace is played; give one instead of a crash or crowd")
                elif isinstance(text, str):
                    self.made((*where, key), ChurnConfig, {key: text})

    def system(self, where: Key, entry: dict[str, Any], names: list[str]) -> SystemEntry | None:
        system = entry.get("system")
        known = {name: kind for name, kind in all_systems().items() if kind.drivers}
        if system not in known:
            self.note((*where, "system"), none_of(system, known))
            return None
        drivers = known[system].drivers
        driver = entry.get("driver", drivers[0])
        if driver not in drivers:
            self.note((*where, "driver"), f"{driver!r}: {system} runs by {' or '.join(drivers)}")
            return None
        on = entry.get("workloads", names)
        for missing in [name for name in on if name not in names]:
            self.note((*where, "workloads"), f"{missing!r}: the workloads here are {', '.join(names) or 'none'}")
        parameters = {key: value for key, value in entry.items() if key not in _SYSTEM_KEYS}
        parameters = self.check_config(
            where, known[system].config_type(driver), parameters, owner=system, also=_SYSTEM_KEYS
        )
        return SystemEntry(system, driver, "driver" in entry, tuple(on), parameters)

    def clock(self, content: dict[str, Any], replaced: dict[str, Any]) -> tuple[ClockConfig | None, tuple[str, ...]]:
        """The settings of runs in virtual time, and the latency matrices that they use."""
        recorded = content.get("recorded", [])
        if not (isinstance(recorded, list) and all(isinstance(path, str) for path in recorded)):
            self.note(("clock", "recorded"), "needs a list of files below the folder of traces")
            recorded = []
        elif content.get("latency") == "recorded" and not recorded:
            self.note(("clock", "latency"), "recorded latency needs the files of `recorded`")
        content = {key: value for key, value in content.items() if key != "recorded"}
        return self.settings("clock", ClockConfig, content, replaced, "hours"), tuple(recorded)

    def settings(
        self, table: str, kind: type[Settings], content: dict[str, Any], replaced: dict[str, Any], quick: str
    ) -> Settings | None:
        """A table of settings; `quick` names the one that [quick] may replace."""
        names: list[str] = list(field_types(kind))
        before = len(self.mistakes)
        self.known((table,), content, [*names, *(["recorded"] if table == "clock" else [])], owner=f"[{table}]")
        settings = {key: value for key, value in content.items() if key in names}
        settings |= {key: replaced[key] for key in (quick,) if key in replaced}
        for key, value in settings.items():
            if said := value_mistake(kind, key, value):
                where = "quick" if key in replaced and key == quick else table
                self.note((where, key), f"{value!r}: {said}")
        if len(self.mistakes) > before:
            return None
        return self.made((table,), kind, settings)

    def plot(self, where: Key, plot: dict[str, Any], axes: list[str]) -> None:
        """A plot; `axes` are those that its x may be."""
        kind = plot.get("kind", "series")
        if kind not in list(PLOT_KINDS):  # whatever its type
            self.note((*where, "kind"), none_of(kind, PLOT_KINDS))
            return
        needed, more = PLOT_KINDS[kind]
        self.known(where, plot, [*_PLOT_KEYS, *needed, *more], owner=f"a plot of kind {kind}")
        for key in [key for key in needed if key not in plot]:
            self.note((*where, key), "a plot of this kind needs it")
        if mistake := _unknown_measure(kind, plot):
            self.note((*where, needed[-1]), mistake)
        if "x" in needed and plot.get("x", axes[0]) not in axes:
            self.note((*where, "x"), none_of(plot["x"], axes, "no grid has "))


def _axes(workloads: list[dict[str, Any]], systems: list[dict[str, Any]]) -> list[str]:
    """What may lie along x: systems, workloads, and whatever a grid varies. [quick] may leave one value of a grid."""
    churns = [entry["churn"] for entry in workloads if isinstance(entry.get("churn"), dict)]
    varied = [
        key for entry in [*workloads, *churns, *systems] for key, value in entry.items() if isinstance(value, list)
    ]
    drivers = ["driver"] if any("driver" in entry for entry in systems) else []
    return ["system", "workload", *drivers, *dict.fromkeys(key for key in varied if key != "workloads")]


def _unknown_measure(kind: str, plot: dict[str, Any]) -> str | None:
    """What to say when nothing of the name that a plot shows is measured; None if it is, or if none is named."""
    name = plot.get("quantity" if kind == "distribution" else "y")
    if name is None:
        return None
    if kind == "series":
        return None if find(str(name)) else unknown(name, CATALOGUE)
    known = list(quantities()) if kind == "distribution" else [metric.name for metric in PROGRESS]
    return None if name in known else unknown(name, known)


def published_experiments() -> dict[str, Path]:
    """The experiments that come with Grapevine, by name: in an installed package, or beside the sources."""
    packaged = Path(__file__).parent / "published"
    folder = packaged if packaged.is_dir() else Path(__file__).resolve().parents[3] / "experiments"
    return {path.stem: path for path in sorted(folder.glob("*.toml"))}
