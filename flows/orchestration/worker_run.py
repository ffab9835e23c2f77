"""`python -m flows.orchestration.worker_run`: what a worker starts for a run, with the environment of the command.

A run and its child processes end with the worker, however that ends: nothing would report on them any more.
"""

import os
import runpy

from flows import environment
from tasks.workers.worker import die_with_parent


def main() -> None:
    """Run the flow run that the worker named in the environment, as `python -m prefect.engine` does."""
    die_with_parent(os.getppid())
    environment.prepare()  # before Prefect is imported, which reads it
    runpy.run_module("prefect.engine", run_name="__main__")


if __name__ == "__main__":
    main()
