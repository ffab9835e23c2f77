"""`python -m flows.orchestration.worker_run`: what a worker starts for a run, in the command's environment.

A run ends with its worker, however that ends: nobody would hear of it any more. And so do the children that it has.
"""

import os
import runpy

from flows import environment
from tasks.workers import die_with_parent


def main() -> None:
    """Runs what the worker named in the environment, as `python -m prefect.engine` does."""
    die_with_parent(os.getppid())
    environment.prepare()  # before Prefect is imported, which reads it
    runpy.run_module("prefect.engine", run_name="__main__")


if __name__ == "__main__":
    main()
