from tests.tasks.doubles.student import *  # noqa: F403  (moved)
