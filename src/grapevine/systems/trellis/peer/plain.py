"""The rules of Trellis as a peer calls them: with whole numbers of Python, which have no width.

A compiled function is compiled once for every mixture of signed and unsigned words, and addresses of 64 bits come as
both. So words are hashed by the compiled rules, always as unsigned ones, and remembered; comparisons and sums of a few
numbers run as the text of the rule itself, which is no slower than a call into compiled code.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache
from typing import Any

import numpy as np

from grapevine.systems.trellis import rules

_REMEMBERED = 1 << 16  # hashes, of each kind: some megabytes, shared by all peers of a process


def _text(rule: Any) -> Callable[..., Any]:
    """The rule as a function of Python, whether it was compiled or not."""
    return getattr(rule, "py_func", rule)


@lru_cache(_REMEMBERED)
def rank_of(topic: int, node: int) -> int:
    """The rank of a cluster of the topic whose root this node is."""
    return int(rules.rank_of(np.uint64(topic), np.uint64(node)))


@lru_cache(_REMEMBERED)
def offer_hash(topic: int, node: int) -> int:
    """By which a node is preferred as a bridge of the topic, or a member as its end."""
    return int(rules.offer_hash(np.uint64(topic), np.uint64(node)))


@lru_cache(_REMEMBERED)
def link_tie(node: int, neighbour: int) -> int:
    """Decides between neighbours that are equally good for the node."""
    return int(rules.link_tie(np.uint64(node), np.uint64(neighbour)))


def parent_tie(node: int, neighbour: int, is_parent: bool) -> int:
    """`link_tie`, but that a parent wins against everybody else."""
    return 0 if is_parent else link_tie(node, neighbour)


may_adopt = _text(rules.may_adopt)
is_better_label = _text(rules.is_better_label)
is_other_way = _text(rules.is_other_way)
is_better_offer = _text(rules.is_better_offer)
shared_value = _text(rules.shared_value)
gain_in_topic = _text(rules.gain_in_topic)
margin_now = _text(rules.margin_now)
accepts_friend = _text(rules.accepts_friend)
is_calm = _text(rules.is_calm)


def warm_up() -> None:
    """Compile the hashes, before anybody waits for them."""
    rank_of(1 << 63, 1)
    offer_hash(1 << 63, 1)
    link_tie(1 << 63, 1)
