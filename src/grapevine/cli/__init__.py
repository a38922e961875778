"""The `grapevine` command: parse, call, print."""
