"""A night's process: the real command with its events logged, and a tiny engine in vLLM's place if asked."""

import os

REAL = "CHAOS_REAL_ENGINE"


def main() -> None:
    from flows import cli, environment

    environment.prepare()
    import flows.nightly  # noqa: F401  # with everything to be watched
    from tasks.workers import engine_process
    from tests.chaos import events, tiny_engine

    if REAL not in os.environ:
        engine_process.sample, engine_process.kv_tokens = tiny_engine.sample, tiny_engine.kv_tokens
        engine_process.prepare = tiny_engine.prepare
    events.watch_night()
    cli.main()


if __name__ == "__main__":
    main()
