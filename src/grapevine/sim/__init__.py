"""Simulation: rounds over arrays, churn, events on their way through the overlay."""
