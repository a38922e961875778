"""`python -m grapevine` is the `grapevine` command."""

from grapevine.cli.main import main

main()
