"""One package per system, `contracts` for what a system's facets owe, and `registry` for all of them by name."""
