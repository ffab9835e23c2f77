"""Tasks for lessons and for the update of each round, and the functions of the trainer's process."""
