"""The update of a round, and the trainer's process."""
