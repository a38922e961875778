"""The reference of the command line, from the commands themselves: what `--help` says, on two pages."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from typing import Any

from grapevine.cli.lazy import load_whole
from grapevine.cli.main import COMMANDS
from pages.markdown import code, from_rich, table, with_readings

_MODELS = "workload", "generate"  # has a page of its own: one command for each model
_HELP_OPTION = "--help"
_NUMBERS = int, float
_MANY = 5  # an option that so many commands have, with the same words, is described once
_HEADS = "", "default", "meaning"

Path = tuple[str, ...]
Row = tuple[str, str, str]


def commands_page() -> str:
    """Every command but those that generate workloads."""
    found = list(all_commands())
    shared = _shared_rows(found)
    parts = [
        "# Commands",
        "",
        "Written by `make pages` from the commands themselves; do not edit it by hand. `grapevine COMMAND --help` says",
        "the same. Where an option names a source, such as `[Vitis §IV-A]`, its default is that paper's; `[ours]` says",
        "that no paper has one.",
        "",
        *table(["command", "does"], ([f"[`{name}`](#grapevine-{name})", made.help] for name, made in COMMANDS.items())),
        "",
        "## Options of many commands",
        "",
        *table(_HEADS, shared),
    ]
    for path, command in found:
        if path == _MODELS:
            parts += ["", _heading(path), "", _prose(command.help), "", "A command for each: [models](models.md)."]
        elif path[:2] != _MODELS:
            parts += _describe(path, command, shared, "#options-of-many-commands")
    return "\n".join(parts) + "\n"


def models_page() -> str:
    """The commands that generate workloads, a model each."""
    found = list(all_commands())
    parts = [
        "# Models of workloads",
        "",
        "Written by `make pages` from the models themselves; do not edit it by hand. In Python,",
        '`grapevine.synthetic.generate("vitis-high", nodes=2_000)` makes the same rows; in experiments, `model` names',
        "one, and further keys are its parameters.",
    ]
    for path, command in found:
        if path[:2] == _MODELS and path != _MODELS:
            parts += _describe(path, command, _shared_rows(found), "commands.md#options-of-many-commands")
    return "\n".join(parts) + "\n"


def all_commands() -> Iterator[tuple[Path, Any]]:
    """Every command and group by its path, e.g. ("workload", "ingest"), in the order of the help."""
    for name, command in COMMANDS.items():
        yield from _below((name,), load_whole(name, command))


def _below(path: Path, command: Any) -> Iterator[tuple[Path, Any]]:
    yield path, command
    for name, inner in getattr(command, "commands", {}).items():
        yield from _below((*path, name), inner)


def _shared_rows(found: list[tuple[Path, Any]]) -> list[Row]:
    """Rows of options that many commands have, in the order in which they are first met."""
    rows = Counter(_row(parameter) for _, command in found for parameter in _shown(command))
    return [row for row, count in rows.items() if count >= _MANY]


def _heading(path: Path) -> str:
    return f"{'#' * min(len(path) + 1, 4)} grapevine {' '.join(path)}"


def _describe(path: Path, command: Any, shared: list[Row], leads_to: str) -> Iterator[str]:
    """A section: the help text, and a table of arguments and options."""
    yield from ("", _heading(path), "", _prose(command.help or ""))
    if hasattr(command, "commands"):
        return
    yield from ("", "```text", _usage(path, command), "```")
    rows = [_row(parameter) for parameter in _shown(command)]
    if own := [row for row in rows if row not in shared]:
        yield ""
        yield from table(_HEADS, own)
    if others := [row[0] for row in rows if row in shared]:
        yield from ("", f"[As many commands]({leads_to}): {', '.join(others)}.")
    if command.epilog:
        title, *entries = _prose(command.epilog).split("\n\n")
        yield from ("", title, "", *(f"- {entry}" for entry in entries))


def _usage(path: Path, command: Any) -> str:
    arguments = [parameter for parameter in command.params if parameter.param_type_name == "argument"]
    required = [option for option in _shown(command) if option.param_type_name == "option" and option.required]
    words = [_name(argument) if argument.required else f"[{_name(argument)}]" for argument in arguments]
    words += [f"{option.opts[0]} {_value(option)}" for option in required]
    return " ".join(["grapevine", *path, *words, "[OPTIONS]"])


def _shown(command: Any) -> list[Any]:
    return [parameter for parameter in command.params if _HELP_OPTION not in parameter.opts]


def _row(parameter: Any) -> Row:
    if parameter.param_type_name == "argument":
        name = code(_name(parameter))
    else:
        first, *others = parameter.opts
        name = ", ".join([code(f"{first} {_value(parameter)}".strip()), *map(code, others)])
    return name, _default(parameter), with_readings(from_rich(parameter.help or ""))


def _name(argument: Any) -> str:
    return str(argument.metavar or argument.name.upper())


def _value(option: Any) -> str:
    """What follows an option; nothing for a flag."""
    if option.is_flag:
        return ""
    return str(option.metavar or ("NUMBER" if option.type_descriptor.annotation in _NUMBERS else "TEXT"))


def _default(parameter: Any) -> str:
    if parameter.required:
        return "required"
    if parameter.default is None or parameter.default is False:
        return ""
    return code(str(parameter.default).lower())


def _prose(text: str) -> str:
    """A help text as paragraphs; lines inside one are joined."""
    paragraphs = [" ".join(part.split()) for part in text.split("\n\n")]
    return "\n\n".join(from_rich(part) for part in paragraphs if part)
