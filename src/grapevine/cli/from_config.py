"""Commands made from configs: an option for every field, so that a parameter is described in one place."""

from __future__ import annotations

import dataclasses
import inspect
from collections.abc import Callable
from typing import Annotated, Any, TypeVar

import typer
from rich.markup import escape

from grapevine.model.config import Config, field_types

Made = TypeVar("Made", bound=Config)


def add_config_command(
    group: typer.Typer,
    name: str,
    config: type[Config],
    run: Callable[..., None],
    *,
    first: list[inspect.Parameter],
    last: list[inspect.Parameter],
    help: str | None = None,
    epilog: str | None = None,
) -> None:
    """A command whose options are the config's fields: their meaning, source and default stand in the help."""
    parameters = [*first, *config_options(config), *last]

    def command(**options: Any) -> None:
        run(take_config(config, options), **options)

    command.__signature__ = inspect.Signature(parameters)  # type: ignore[attr-defined]
    command.__annotations__ = {parameter.name: parameter.annotation for parameter in parameters}
    group.command(name, help=help or config.__doc__, epilog=epilog)(command)


def config_options(config: type[Config]) -> list[inspect.Parameter]:
    """An option for every field, called as the field: `round_s` is `--round-s`."""
    types, options = field_types(config), []
    for field in dataclasses.fields(config):
        meta = field.metadata
        choices = f" One of {', '.join(meta['choices'])}." if meta["choices"] else ""
        text = f"{meta['help'][0].upper()}{meta['help'][1:]}.{choices} [{meta['source']}]"
        made = typer.Option(f"--{field.name.replace('_', '-')}", help=escape(text))
        options.append(option(field.name, Annotated[types[field.name] | None, made], field.default))
    return options


def take_config(config: type[Made], options: dict[str, Any]) -> Made:
    """The config that the options of `config_options` ask for; they are removed from the others."""
    return config(**{field.name: options.pop(field.name) for field in dataclasses.fields(config)})


def option(name: str, annotation: Any, default: Any = inspect.Parameter.empty) -> inspect.Parameter:
    """One more option or argument of such a command."""
    return inspect.Parameter(name, inspect.Parameter.KEYWORD_ONLY, default=default, annotation=annotation)
