"""`python -m flows` is the `nightschool` command."""

from flows.cli import main

main()
