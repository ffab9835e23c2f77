"""What happens, in which order: the night, a block of rounds, the commands."""
