"""What the tests of the documentation see in Markdown, on a page of a few lines."""

from __future__ import annotations

from tests.docs.markdown import anchors_of, blocks_of, links_of

PAGE = """# One page

See [the other](other.md#here), `[not this](code.md)` and ![a picture](a.svg "title").
<a href="b.md">b</a>

```python
print(1)  # [nor](this.md)
```

```text
1
```

## What it costs, in µs {#costs}
## On λ and μ
## Nodes, links

<!-- not run: it needs a network -->

```python
## no heading
```

Prose between.

```text
no output of the block above
```
"""


def test_links_are_found_outside_of_code() -> None:
    assert list(links_of(PAGE)) == [(3, "other.md#here"), (3, "a.svg"), (4, "b.md")]


def test_anchors_are_those_that_site_and_forge_agree_on() -> None:
    """`On λ and μ` is `on-and` for the one and `on-λ-and-μ` for the other."""
    assert anchors_of(PAGE) == {"one-page", "costs", "nodes-links"}
    assert anchors_of('<span id="opt"></span>**OPT**') == {"opt"}


def test_blocks_know_why_they_are_not_run_and_what_they_print() -> None:
    first, _, second, _ = blocks_of(PAGE)
    assert (first.language, first.text, first.line) == ("python", "print(1)  # [nor](this.md)\n", 7)
    assert (first.not_run, first.prints) == ("", "1\n")
    assert (second.not_run, second.prints) == ("it needs a network", None)
