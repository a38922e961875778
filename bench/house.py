"""How healthy the source is: lengths of files and functions, arguments, imports, blocks that serve one system alone.

.venv/bin/python -m bench.house

The limits are those of CONTRIBUTING.md. It prints and never fails: a number beyond its limit is a question to a reader.
"""

from __future__ import annotations

import ast
from collections import defaultdict
from collections.abc import Iterable, Iterator
from pathlib import Path
from statistics import median
from typing import NamedTuple

ROOT = Path(__file__).parents[1] / "src" / "grapevine"
METRIC = "hit_ratio"  # a metric is defined in one file and named in few
FILE_LINES, FUNCTION_LINES, ARGUMENTS, IMPORTS = 400, 60, 7, 14
FRAMES = {"contracts", "registry"}  # of `systems`, which all systems use

Function = ast.FunctionDef | ast.AsyncFunctionDef


class Measured(NamedTuple):
    """Something in the source, and a number that describes it."""

    name: str
    value: int


class Source:
    """All modules of the package, parsed."""

    def __init__(self, root: Path = ROOT) -> None:
        paths = sorted(root.rglob("*.py"))
        self.texts = {module_name(root, path): path.read_text(encoding="utf-8") for path in paths}
        self.trees = {name: ast.parse(text) for name, text in self.texts.items()}
        self.imports = {name: frozenset(self._imported(name)) for name in self.trees}

    def file_lengths(self) -> list[Measured]:
        """Lines of every file."""
        return [Measured(name, text.count("\n")) for name, text in self.texts.items()]

    def functions(self) -> Iterator[tuple[str, Function]]:
        """All functions and methods, those inside others too, and what they are called."""
        for module, tree in self.trees.items():
            for node in ast.walk(tree):
                if isinstance(node, Function):
                    yield f"{module}:{node.lineno} {node.name}", node

    def function_lengths(self) -> list[Measured]:
        """Lines of every function, from `def` to its end."""
        return [Measured(name, (node.end_lineno or node.lineno) - node.lineno + 1) for name, node in self.functions()]

    def arguments(self) -> list[Measured]:
        """Parameters of every function, `self` and `cls` aside."""
        return [Measured(name, count_parameters(node)) for name, node in self.functions()]

    def fan_out(self) -> list[Measured]:
        """Modules of ours that each module imports."""
        return [Measured(name, len(imported)) for name, imported in self.imports.items()]

    def blocks_of_one_system(self) -> list[tuple[str, str]]:
        """Blocks that nobody but one system needs, itself or through other blocks; and that system."""
        users: dict[str, set[str]] = defaultdict(set)
        for module in self.imports:
            if not module.startswith("blocks."):
                for block in self._blocks_behind(module):
                    users[block].add(unit(module))
        return sorted(
            (block, next(iter(who)))
            for block, who in users.items()
            if len(who) == 1 and all(user.startswith("systems.") for user in who)
        )

    def files_that_name(self, word: str) -> list[str]:
        """Modules in whose text the word occurs."""
        return [name for name, text in self.texts.items() if word in text]

    def _blocks_behind(self, module: str) -> set[str]:
        found: set[str] = set()
        waiting = [module]
        while waiting:
            new = {name for name in self.imports[waiting.pop()] if name.startswith("blocks.")} - found
            found |= new
            waiting += new
        return found

    def _imported(self, module: str) -> Iterator[str]:
        """Modules of ours that this one imports, at its top or inside a function."""
        for node in ast.walk(self.trees[module]):
            if isinstance(node, ast.Import):
                names = [alias.name for alias in node.names]
            elif isinstance(node, ast.ImportFrom) and node.module:
                names = [f"{node.module}.{alias.name}" for alias in node.names]
            else:
                continue
            for name in names:
                found = self._module_of(name.removeprefix("grapevine."))
                if name.startswith("grapevine.") and found is not None and found != module:
                    yield found

    def _module_of(self, name: str) -> str | None:
        """The module that a dotted name is, or is in."""
        while name not in self.texts and "." in name:
            name = name.rpartition(".")[0]
        return name if name in self.texts else None


def module_name(root: Path, path: Path) -> str:
    """`systems.vitis` for systems/vitis.py, `systems` for systems/__init__.py."""
    parts = path.relative_to(root).with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts) or "grapevine"


def unit(module: str) -> str:
    """The system that a module belongs to, a package as a whole; of other layers the layer."""
    layer, _, rest = module.partition(".")
    system = rest.partition(".")[0]
    return f"systems.{system}" if layer == "systems" and system and system not in FRAMES else f"{layer} (shared)"


def count_parameters(function: Function) -> int:
    """All of them, `self` and `cls` aside."""
    taken = function.args
    named = [*taken.posonlyargs, *taken.args]
    if named and named[0].arg in ("self", "cls"):
        named = named[1:]
    return len(named) + len(taken.kwonlyargs) + (taken.vararg is not None) + (taken.kwarg is not None)


def beyond(measured: Iterable[Measured], limit: int) -> list[Measured]:
    """What exceeds the limit, the largest first."""
    return sorted((one for one in measured if one.value > limit), key=lambda one: (-one.value, one.name))


def show(title: str, found: Iterable[object]) -> None:
    """A title with a count, and a line for each."""
    lines = [f"  {one.value:>5}  {one.name}" if isinstance(one, Measured) else f"         {one}" for one in found]
    print("\n".join([f"{title}: {len(lines)}", *lines]))


def main() -> None:
    """Print all of it."""
    source = Source()
    files, functions = source.file_lengths(), source.function_lengths()
    print(f"files: {len(files)}, median {median(one.value for one in files):g} lines")
    print(f"functions: {len(functions)}, median {median(one.value for one in functions):g} lines")
    show(f"files over {FILE_LINES} lines", beyond(files, FILE_LINES))
    show(f"functions over {FUNCTION_LINES} lines", beyond(functions, FUNCTION_LINES))
    show(f"functions with more than {ARGUMENTS} arguments", beyond(source.arguments(), ARGUMENTS))
    widest = max(source.fan_out(), key=lambda one: one.value)
    print(f"largest fan-out: {widest.value} modules of ours, imported by {widest.name}")
    show(f"modules that import more than {IMPORTS} of ours", beyond(source.fan_out(), IMPORTS))
    show("blocks that serve one system", (f"{block}: {system}" for block, system in source.blocks_of_one_system()))
    show(f"files that name {METRIC}", source.files_that_name(METRIC))


if __name__ == "__main__":
    main()
