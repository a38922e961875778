"""The sans-IO peer of Trellis."""
