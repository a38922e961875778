"""Experiments: what a TOML file describes, which runs it means, and what the papers claim about them."""
