"""Arrays in, numbers out: each measure is defined here once, for simulations, live runs and the pipeline alike."""
