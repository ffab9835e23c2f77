"""Makes `python -m flows` run the `nightschool` command."""

from flows.cli import main

main()
