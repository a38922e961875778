"""Doors: other protocols than ours by which programs reach a node."""
