"""Every Python block of the documentation runs, and prints what the page says that it prints.

The blocks of a page are one program: what one defines, the next may use. A block that cannot run here has a comment
before it, which readers do not see: `<!-- not run: why -->`. A `text` block that follows a Python block at once is what
it prints.
"""

from __future__ import annotations

import io
from contextlib import chdir, redirect_stdout
from pathlib import Path
from typing import Any

import pytest

from tests.docs.markdown import PAGES, Block, blocks_of, names


def blocks_to_run(page: Path) -> list[Block]:
    blocks = blocks_of(page.read_text(encoding="utf-8"))
    return [block for block in blocks if block.language == "python" and not block.not_run]


def run_all(page: Path, blocks: list[Block], folder: Path) -> None:
    """Run the blocks of a page in this folder; AssertionError if one prints something else than the page says."""
    shared: dict[str, Any] = {"__name__": "__main__"}
    with chdir(folder):
        for block in blocks:
            printed = io.StringIO()
            code = compile("\n" * (block.line - 1) + block.text, str(page), "exec")  # errors name the page's line
            with redirect_stdout(printed):
                exec(code, shared)
            if block.prints is not None:
                assert printed.getvalue() == block.prints, f"{page.name}, line {block.line}"


WITH_EXAMPLES = [page for page in PAGES if blocks_to_run(page)]


@pytest.mark.parametrize("page", WITH_EXAMPLES, ids=names(WITH_EXAMPLES))
def test_the_examples_of_a_page_run(page: Path, tmp_path: Path) -> None:
    run_all(page, blocks_to_run(page), tmp_path)


def test_an_example_that_fails_or_prints_something_else_is_noticed(tmp_path: Path) -> None:
    page = tmp_path / "page.md"
    page.write_text("```python\nx = 2\n```\n\n```python\nprint(x)\n```\n\n```text\n3\n```\n")
    with pytest.raises(AssertionError, match=r"page\.md, line 6"):
        run_all(page, blocks_to_run(page), tmp_path)
    page.write_text("```python\nprint(y)\n```\n")
    with pytest.raises(NameError):
        run_all(page, blocks_to_run(page), tmp_path)


def test_the_tutorials_have_examples() -> None:
    """Otherwise a mistake in finding them would go unnoticed."""
    assert {"trace.md", "live.md", "README.md"} <= {page.name for page in WITH_EXAMPLES}
