"""All models by name, and how to make a workload or churn of one in memory, without Spark."""

from __future__ import annotations

from typing import Any

import numpy as np

from grapevine.kernels.jit import compiling_told
from grapevine.model.arguments import plain
from grapevine.model.config import check_seed
from grapevine.model.errors import UsageError
from grapevine.model.settings import make, none_of
from grapevine.model.workload import Churn, Csr, Workload
from grapevine.synthetic.base import ChurnModel, SubscriptionModel
from grapevine.synthetic.magnet import MagnetHierarchical, MagnetModal, MagnetSpatial
from grapevine.synthetic.omen import MachineChurn, Omen
from grapevine.synthetic.rappel import Outage, OvernetChurn, RappelFeed
from grapevine.synthetic.spidercast import SpiderCast, SpiderCastChurn
from grapevine.synthetic.vitis import TwitterLike, VitisHigh, VitisLow, VitisRandom

MODELS: dict[str, type[SubscriptionModel] | type[ChurnModel]] = {
    "vitis-random": VitisRandom,
    "vitis-low": VitisLow,
    "vitis-high": VitisHigh,
    "twitter-like": TwitterLike,
    "spidercast": SpiderCast,
    "magnet-modal": MagnetModal,
    "magnet-spatial": MagnetSpatial,
    "magnet-hierarchical": MagnetHierarchical,
    "omen": Omen,
    "rappel-feed": RappelFeed,
    "spidercast-churn": SpiderCastChurn,
    "machine-churn": MachineChurn,
    "overnet-churn": OvernetChurn,
    "outage": Outage,
}


def model_named(name: str) -> type[SubscriptionModel] | type[ChurnModel]:
    """The model class of this name; UsageError with the names there are if it is unknown."""
    if not isinstance(name, str) or name not in MODELS:
        raise UsageError(none_of(name, MODELS, "model "))
    return MODELS[name]


def generate_churn(name: str, *, seed: int = 1, **parameters: Any) -> Churn:
    """Synthetic sessions in memory, sorted by time of joining, then node; `parameters` are fields of the model.

    UsageError if the model makes subscriptions, or a parameter is unknown or out of bounds.
    """
    model = _make(name, parameters)
    if not isinstance(model, ChurnModel):
        raise UsageError(f"{name} makes subscriptions, not churn; choose a churn model, or generate")
    seed = plain(seed)
    check_seed(seed)
    with compiling_told(name):
        node, joined, left = model.sessions(seed, 0, model.nodes)
    order = np.lexsort((node, joined))  # as `load_churn` reads a stored table
    return Churn(node[order], joined[order], np.where(np.isnan(left), np.inf, left)[order])


def _make(name: str, parameters: dict[str, Any]) -> SubscriptionModel | ChurnModel:
    return make(model_named(name), parameters, owner=name, beside=("seed",))


def generate(name: str, *, seed: int = 1, **parameters: Any) -> Workload:
    """A synthetic workload in memory: the rows that `grapevine workload generate` would store for the same seed.

    `parameters` are fields of the model. UsageError if the model makes churn, or a parameter is unknown or out of
    bounds.
    """
    model, seed = _make(name, parameters), plain(seed)
    check_seed(seed)
    if isinstance(model, ChurnModel):
        raise UsageError(f"{name} makes churn, not subscriptions; choose a subscription model, or generate_churn")
    publishers = np.arange(model.topic_count, dtype=np.int32) if model.topic_is_node else None
    with compiling_told(name):
        return Workload.from_rows(
            Csr(*model.subscriptions(seed, 0, model.nodes)),
            topic_count=model.topic_count,
            rates=model.rates(seed),
            publishers=publishers,
            name=name,
        )
