"""Live nodes under torture: whole networks of them in virtual time, with every fault that a seed can think of.

    outcome = run_seed(7, Settings(nodes=6, minutes=10))     # the same outcome every time

What runs are `Node` objects with their real stores, signatures and connections. What is not real is around them: the
clock (`loop`, `wall_clock`), the network (`network`, `channel`), the disk (`disk`) and the machine that crashes
(`machine`). A seed decides what befalls them, and what applications do (`schedule`). An `oracle` that sees
every publication and every event that is read says whether the promises were kept; if not, `shrink` looks for the few
faults that matter. Everything that happens is a function of seed, settings and faults, so that a failure can be looked
at again (`transcript`).
"""

from grapevine.net.torture.campaign import Campaign, run_seeds
from grapevine.net.torture.run import Outcome, run_seed
from grapevine.net.torture.schedule import Fault, Settings
from grapevine.net.torture.shrink import shrunk

__all__ = ["Campaign", "Fault", "Outcome", "Settings", "run_seed", "run_seeds", "shrunk"]
