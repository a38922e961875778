"""The strawman over arrays: everything is inherited from what it shares with Magnet."""

from __future__ import annotations

from grapevine.systems.magnet.config import OscarConfig
from grapevine.systems.magnet.home_trees import OscarSystem


class Strawman(OscarSystem):
    """The strawman on a network."""

    config_type = OscarConfig
