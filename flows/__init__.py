"""The top layer, which decides what runs and in which order: the night, its rounds and the CLI commands."""
