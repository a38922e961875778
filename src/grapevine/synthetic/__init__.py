"""The papers' synthetic workloads as plain functions of (config, seed, node range): no files, no Spark.

One module per paper. A model is a `Config` whose fields default to the paper's values; `MODELS` names them all.
"""

from grapevine.synthetic.registry import MODELS, generate, generate_churn, model_named

__all__ = ["MODELS", "generate", "generate_churn", "model_named"]
