"""Trellis (ours, 2026): clusters on agreed links under a hard bound, joined by bridges of single nodes."""
