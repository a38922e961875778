"""The sans-IO peer of SpiderCast."""
