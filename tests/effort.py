"""How much a property test tries: less in `make test`, more in `make test-full`."""

from __future__ import annotations

from hypothesis import settings


def examples(share: float) -> settings:
    """For a property whose examples cost more, or less, than most: a share of what other properties try."""
    return settings(max_examples=max(1, round(share * settings().max_examples)))
