"""What a node hears of in a round, simulated or live: candidates for its links, before any rule has looked at them."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from grapevine.kernels.csr import Columns

Points = NDArray[np.uint64]  # places on the ring


class Entries(NamedTuple):
    """What one node hears of in a round, as a list with room for more; a node may stand in it several times."""

    nodes: Columns
    points: Points  # their ring ids, for systems on a ring
