"""Settings of Scribe."""

from __future__ import annotations

from typing import Any

import pytest

from grapevine.model.errors import UsageError
from grapevine.systems.scribe.config import ScribeConfig


@pytest.mark.parametrize("setting", [{"digit_bits": 3}, {"leaf_size": 5}, {"heartbeat_s": 0}])
def test_settings_that_make_no_overlay_are_refused(setting: dict[str, Any]) -> None:
    with pytest.raises(UsageError, match=next(iter(setting))):
        ScribeConfig(**setting)
