"""The reference of the Python names that applications use, from their sources: signatures, fields and docstrings.

Sources are read, not imported objects: signatures then look as they were written, whatever the version of Python, and
the comments behind fields, which say what they hold, are still there.
"""

from __future__ import annotations

import ast
import inspect
import re
from collections.abc import Iterator
from importlib import import_module
from typing import Any

from pages.markdown import code, table

MODULES = {  # what applications import from, and what for
    "grapevine": "workloads, simulations and errors",
    "grapevine.synthetic": "workloads and churn of the papers' models",
    "grapevine.net": "live nodes",
}
FOR_US = {  # called by our own code, of no use to applications
    *("Simulation.write", "Workload.from_rows"),
    *("Inbox.begin", "Inbox.put", "Inbox.close"),
    *("Node.connections", "Node.exchanges"),
}
_WIDE = 100  # characters of a signature on one line
_PROPERTIES = {"property", "cached_property"}
_PATHS = re.compile(r"`?docs/(\w+\.md)`?")
_Function = ast.FunctionDef | ast.AsyncFunctionDef


def python_page() -> str:
    """All public names, module by module."""
    parts = [
        "# Python",
        "",
        "Written by `make pages` from the docstrings; do not edit it by hand. Names that are not here may change",
        "without notice. `UsageError` means that the caller can mend it; its message says how.",
    ]
    for module, what in MODULES.items():
        parts += ["", f"## {module}", "", f"For {what}."]
        for name in import_module(module).__all__:
            found = getattr(import_module(module), name)
            if inspect.isclass(found) or inspect.isfunction(found):
                parts += _describe(found)
    return "\n".join(parts) + "\n"


def _describe(found: Any) -> Iterator[str]:
    """A class with what is public of it, or a function."""
    (node,) = ast.parse(inspect.getsource(found)).body
    yield from ("", f"### {found.__name__}", "")
    if isinstance(node, _Function):
        yield from (*_signature(node, ""), "", _text(node))
        return
    assert isinstance(node, ast.ClassDef)
    bases = ", ".join(ast.unparse(base) for base in node.bases)
    yield from ("```py", f"class {node.name}({bases})" if bases else f"class {node.name}", "```", "", _text(node))
    public = [
        method
        for method in node.body
        if isinstance(method, _Function) and method.name[0] != "_" and f"{node.name}.{method.name}" not in FOR_US
    ]
    properties = [(code(one.name), _type(one.returns), _text(one)) for one in public if _marks(one) & _PROPERTIES]
    if attributes := [*_fields(found, node), *properties]:
        yield ""
        yield from table(["attribute", "type", "is"], attributes)
    for method in public:
        if not _marks(method) & _PROPERTIES:
            yield from ("", f"#### {node.name}.{method.name}", "", *_signature(method, node.name), "", _text(method))


def _fields(found: Any, node: ast.ClassDef) -> Iterator[tuple[str, str, str]]:
    """The fields of a class: name, type and the comment on their line."""
    lines = inspect.getsource(found).splitlines()
    for field in node.body:
        if isinstance(field, ast.AnnAssign) and isinstance(field.target, ast.Name):
            _, _, comment = lines[field.lineno - 1].partition("  # ")
            yield code(field.target.id), _type(field.annotation), comment


def _type(annotation: ast.expr | None) -> str:
    """A type as code in a table."""
    return code(ast.unparse(annotation)) if annotation else ""


def _marks(function: _Function) -> set[str]:
    """Its decorators."""
    return {ast.unparse(mark) for mark in function.decorator_list}


def _signature(function: _Function, owner: str) -> Iterator[str]:
    """How it is called, as a block of code: an argument a line where one line would be too long."""
    marks = _marks(function)
    before = "async with " if "asynccontextmanager" in marks else "await " * isinstance(function, ast.AsyncFunctionDef)
    before += f"{owner if 'classmethod' in marks else owner.lower()}." if owner else ""
    arguments = [argument for argument in _arguments(function.args) if argument not in ("self", "cls")]
    after = f") -> {ast.unparse(function.returns)}" if function.returns else ")"
    line = f"{before}{function.name}({', '.join(arguments)}{after}"
    if len(line) > _WIDE:
        line = "\n".join([f"{before}{function.name}(", *(f"    {argument}," for argument in arguments), after])
    yield from ("```py", line, "```")


def _arguments(given: ast.arguments) -> Iterator[str]:
    """Each argument as it was written, in order, `*` included."""
    plain = [*given.posonlyargs, *given.args]
    defaults = [*[None] * (len(plain) - len(given.defaults)), *given.defaults]
    for argument, default in zip(plain, defaults, strict=True):
        yield _argument(argument, default)
    if given.vararg:
        yield f"*{_argument(given.vararg, None)}"
    elif given.kwonlyargs:
        yield "*"
    for argument, default in zip(given.kwonlyargs, given.kw_defaults, strict=True):
        yield _argument(argument, default)
    if given.kwarg:
        yield f"**{_argument(given.kwarg, None)}"


def _argument(argument: ast.arg, default: ast.expr | None) -> str:
    kind = f": {ast.unparse(argument.annotation)}" if argument.annotation else ""
    given = "" if default is None else f" = {ast.unparse(default)}" if kind else f"={ast.unparse(default)}"
    return f"{argument.arg}{kind}{given}"


def _text(node: Any) -> str:
    """The docstring as Markdown: lines of a paragraph joined, files of docs/ as links."""
    paragraphs = (" ".join(part.split()) for part in (ast.get_docstring(node) or "").split("\n\n"))
    return _PATHS.sub(r"[\1](../\1)", "\n\n".join(paragraphs))
