"""Groups of commands whose modules are imported when a command is called.

The modules of all commands take seconds to import (numba, Spark, plotting), and the help of a group needs none of
them: what it says of its commands stands beside their names. `tests/cli/test_main.py` compares it with what they say.
"""

from __future__ import annotations

from collections.abc import Mapping
from importlib import import_module
from typing import Any, NamedTuple

import typer
from typer.core import TyperCommand, TyperGroup
from typer.main import get_group


class Command(NamedTuple):
    """Where a command is, and what the help of its group says of it."""

    module: str  # below `grapevine.cli`
    attribute: str  # a function, a group of commands, or `add_to`, which adds the command to an app
    help: str


def lazy_group(commands: Mapping[str, Command]) -> type[TyperGroup]:
    """The class of a group of these commands, in this order."""

    class Commands(TyperGroup):
        """Until they are called there is their name and what the help says."""

        lazy = commands

        def __init__(self, **given: Any) -> None:
            super().__init__(**given)
            self.commands = {name: TyperCommand(name, help=command.help) for name, command in commands.items()}

        def resolve_command(self, ctx: Any, args: list[str]) -> Any:
            """The command that these arguments call."""
            if args and args[0] in commands:
                self.commands[args[0]] = load(args[0], commands[args[0]])
            return super().resolve_command(ctx, args)

    return Commands


def load(name: str, command: Command) -> Any:
    """Import a command."""
    found = getattr(import_module(f"grapevine.cli.{command.module}"), command.attribute)
    holder = typer.Typer(rich_markup_mode="rich")
    if command.attribute == "add_to":
        found(holder)
    elif isinstance(found, typer.Typer):
        holder.add_typer(found, name=name)
    else:
        holder.command(name)(found)
    return get_group(holder).commands[name]


def load_whole(name: str, command: Command) -> Any:
    """Import a command, and if it is a lazy group, all that are below it: for whoever describes or checks them."""
    found = load(name, command)
    for inner, below in getattr(found, "lazy", {}).items():
        found.commands[inner] = load_whole(inner, below)
    return found
