"""The subcommands of `nightschool`."""
