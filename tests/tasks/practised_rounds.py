from tests.tasks.doubles.tables import *  # noqa: F403  (moved)
