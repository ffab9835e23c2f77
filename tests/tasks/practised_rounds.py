from tests.tasks.doubles.rounds import *  # noqa: F403  (moved)
