"""A worker's run, as `flows.orchestration.worker_run` makes it, with a tiny engine in vLLM's place."""

from flows import environment
from flows.orchestration import worker_run

if __name__ == "__main__":
    environment.prepare()
    from tasks.workers import engine_process
    from tests.chaos import tiny_engine

    engine_process.sample, engine_process.prepare = tiny_engine.sample, tiny_engine.prepare
    worker_run.main()
