"""How much memory a part needs, so that blocks can be made to fit the workers (docs/scale.md)."""

from __future__ import annotations


def memory_of_a_part(nodes: int, *, slots: int, samples: int, backups: int, remembered: int = 8) -> int:
    """The most bytes of arrays that a move holds for a part of so many nodes, each with room for so many links, samples
    and ring backups, and so many bytes remembered beside a link.

    In the last move these are the own rows, what came (the answers, and the kept requests), all of it in one piece, the
    new rows, and lists of contacts: eight times what is sent of a row, where every node is called once. A node that
    many call costs the rows of its callers, at the part where it is. Profiles are mapped, and shared by all tasks of a
    machine; the interpreter and its libraries take 0.2 GB a task beside that.
    """
    sent = 4 * (2 * slots + 2 * samples + backups)
    return nodes * (8 * sent + 2 * remembered * slots)
