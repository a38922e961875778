"""Mechanisms that two or more systems share: peer sampling, view exchange, small-world ring, coverage, lookup."""
