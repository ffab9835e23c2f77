"""A worker's run, as `flows.worker_run` makes it, with a tiny engine in vLLM's place."""

from flows import environment, worker_run

if __name__ == "__main__":
    environment.prepare()
    from tasks import engine
    from tests.chaos import tiny_engine

    engine.sample = tiny_engine.sample
    worker_run.main()
