"""The flows, which decide what runs in which order: the night, a block of rounds, and the CLI commands."""
