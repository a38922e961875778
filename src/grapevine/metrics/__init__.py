"""Arrays in, numbers out: the one place where each measure is defined, for simulations, live runs and pipeline alike."""
