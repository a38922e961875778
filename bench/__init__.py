"""Measured speed."""
