"""RingPT (SpiderCast §3.9.2): a ring of its own for every topic, in the order of node ids; equal links are merged.

Every topic is connected by two links a subscriber, however similar the subscribers are, so the degree grows with the
number of topics. Nodes know the membership: the next subscriber that is online is found at once.
"""

from __future__ import annotations

from grapevine.systems.registry import System, register

register(
    System(
        name="ring-per-topic",
        paper="a rival of SpiderCast, DEBS 2007, §3.9.2 (as Sub-2-Sub, Voulgaris et al. 2006)",
        summary="a ring per topic in the order of node ids, equal links merged; blind to how interests overlap",
        rounds="grapevine.systems.ring_per_topic.rounds:RingPerTopic",
    )
)
