from tests.tasks.doubles.night import *  # noqa: F403  (moved)
