"""Commands made from configs: an option for every field, so that a parameter is described in one place."""

from __future__ import annotations

import dataclasses
import inspect
from collections.abc import Callable
from typing import Annotated, Any

import typer
from rich.markup import escape

from grapevine.model.config import Config, field_types


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
    parameters = list(first)
    types = field_types(config)
    for field in dataclasses.fields(config):
        meta = field.metadata
        choices = f" One of {', '.join(meta['choices'])}." if meta["choices"] else ""
        text = f"{meta['help'][0].upper()}{meta['help'][1:]}.{choices} [{meta['source']}]"
        option = typer.Option(f"--{field.name.replace('_', '-')}", help=escape(text))
        kind: Any = Annotated[types[field.name] | None, option]
        parameters.append(
            inspect.Parameter(field.name, inspect.Parameter.KEYWORD_ONLY, default=field.default, annotation=kind)
        )

    parameters += last

    def command(**options: Any) -> None:
        chosen = {field.name: options.pop(field.name) for field in dataclasses.fields(config)}
        run(config(**chosen), **options)

    command.__signature__ = inspect.Signature(parameters)  # type: ignore[attr-defined]
    command.__annotations__ = {parameter.name: parameter.annotation for parameter in parameters}
    group.command(name, help=help or config.__doc__, epilog=epilog)(command)


def option(name: str, annotation: Any, default: Any = inspect.Parameter.empty) -> inspect.Parameter:
    """One more option or argument of such a command."""
    return inspect.Parameter(name, inspect.Parameter.KEYWORD_ONLY, default=default, annotation=annotation)
