"""The top-level flows, which decide what runs and in which order: the night, its rounds, and the CLI commands."""
