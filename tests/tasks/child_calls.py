from tests.tasks.doubles.child_calls import *  # noqa: F403  (moved)
