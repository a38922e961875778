"""What an application's validator says of an event, and whom that concerns.

Blame goes to those who could know. A relay has no validator of ours, so it is never blamed for what it passes on:

| verdict        | the event is                             | blamed is                                              |
|----------------|------------------------------------------|--------------------------------------------------------|
| ACCEPT, `True` | kept, delivered and passed on            | nobody                                                 |
| IGNORE         | neither kept nor delivered nor passed on | nobody: it is none of ours, or too old, or a duplicate |
| REJECT, `False`| the same                                 | its publisher, if this node is connected to it         |
"""

from __future__ import annotations

from collections.abc import Callable
from enum import Enum

from grapevine.net.envelope import Event


class Verdict(Enum):
    """The answer of a validator; the module says what follows from each."""

    ACCEPT = "accept"
    IGNORE = "ignore"
    REJECT = "reject"


Validator = Callable[[Event], bool | Verdict]


def verdict_of(answer: bool | Verdict) -> Verdict:
    """What an answer means; a plain one is True for ACCEPT, and otherwise REJECT."""
    if isinstance(answer, Verdict):
        return answer
    return Verdict.ACCEPT if answer else Verdict.REJECT
