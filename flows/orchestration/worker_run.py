"""`python -m flows.orchestration.worker_run`: the command with which a worker starts a flow run.

If the worker ends or dies, so do the run and its child processes, because nothing would report on them any more.
"""

import os
import runpy

from flows import environment
from tasks.workers.worker import die_with_parent


def main() -> None:
    """Run the flow run that the worker names in an environment variable, as `python -m prefect.engine` does."""
    die_with_parent(os.getppid())
    environment.prepare()  # before the import of Prefect, which reads the environment
    runpy.run_module("prefect.engine", run_name="__main__")


if __name__ == "__main__":
    main()
