"""Where a key stands in a TOML file."""

from __future__ import annotations

from grapevine.experiment.lines import key_lines, nearest_line

TEXT = """title = "x"

[run]
rounds = 3
[[workloads]]
name = "a"
[[workloads]]
  "name" = "b"
nodes = 5
[systems.vitis]
table_size = 4
"""


def test_every_key_and_every_table_has_its_line() -> None:
    assert key_lines(TEXT) == {
        ("title",): 1,
        ("run",): 3,
        ("run", "rounds"): 4,
        ("workloads", 0): 5,
        ("workloads", 0, "name"): 6,
        ("workloads", 1): 7,
        ("workloads", 1, "name"): 8,
        ("workloads", 1, "nodes"): 9,
        ("systems", "vitis"): 10,
        ("systems", "vitis", "table_size"): 11,
    }


def test_a_missing_key_is_told_with_the_line_of_its_table() -> None:
    lines = key_lines(TEXT)
    assert nearest_line(lines, ("workloads", 1, "nodes")) == 9
    assert nearest_line(lines, ("workloads", 1, "topics", "deeper")) == 7
    assert nearest_line(lines, ("nothing",)) == 1
