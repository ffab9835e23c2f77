"""Tasks that train on lessons and on rounds, and the functions that run in the trainer's process."""
