"""`python -m flows.orchestration.worker_run`: how a worker starts a flow run, in the environment of `nightschool`.

However the worker ends, the run and its child processes end with it, because nothing would report on them any more.
"""

import os
import runpy

from flows import environment
from tasks.workers.worker import die_with_parent


def main() -> None:
    """Run the flow run that the worker names in the environment, as `python -m prefect.engine` does."""
    die_with_parent(os.getppid())
    environment.prepare()  # before Prefect is imported, because Prefect reads the environment then
    runpy.run_module("prefect.engine", run_name="__main__")


if __name__ == "__main__":
    main()
