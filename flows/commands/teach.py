"""`nightschool teach`: the classroom, as a page on this machine."""

import os
import secrets
import signal
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated

import typer

from conf.load import STARTER, load_night
from conf.schema import LoraConfig
from conf.storage.home import Home
from conf.storage.locks import refuse_second, refuse_second_server
from flows.commands.options import AsJson, Config, Overrides, print_json
from flows.commands.serve import IMPATIENT, listener
from flows.web.address import HERE

CONVERSATIONS = 16  # answers that the engine writes at the same time, at most
CACHE = 0.25  # GiB of their keys and values, on a CPU


def teach(
    port: Annotated[int, typer.Option(help="port of the page", min=1, max=65535)] = 8010,
    terminal: Annotated[bool, typer.Option("--terminal", help="teach in this terminal, for example over ssh")] = False,
    config: Config = STARTER,
    overrides: Overrides = None,
    as_json: AsJson = False,
) -> None:
    """Teach the model that serves by day, until Ctrl-C: ask, see five answers, pick one (docs/how-to/teach.md).

    It learns from each click at once, and shows it in its next answers. Every lesson can be undone, and is kept in the
    journal, from which the night learns. --json prints one line {url, port, token} once the page is ready.
    """
    home, settings = Home.here(), load_night(config, overrides or [])
    refuse_second(home.root)
    refuse_second_server(home.root)
    with listener(HERE, port) as socket:
        os.environ.update(IMPATIENT)
        from flows.run.registry import open_registry  # after the first checks: the libraries take seconds to import
        from flows.serving.proxy import listening
        from flows.serving.supervisor import Serving, checked_daytime, no_daytime
        from flows.teaching.app import make_app
        from flows.teaching.classroom import LOG, Classroom
        from flows.teaching.engine import Engine

        if (registry := open_registry(home, settings)) is None:
            raise no_daytime(settings.name)
        wanted = checked_daytime(home, registry)
        home.make_private()
        adapter = LoraConfig(rank=settings.teach.rank, alpha=2 * settings.teach.rank)
        engine = settings.engine.model_copy(
            update={"lora": adapter, "max_num_seqs": CONVERSATIONS, "kv_cache_gb": CACHE}
        )
        settings = settings.model_copy(update={"engine": engine})
        token, told = secrets.token_urlsafe(32), False
        address = {"url": f"{HERE.url(port)}/#t={token}", "port": port, "token": token}

        def say(text: str) -> None:
            if not as_json:
                print(text, flush=True)

        def on_open() -> None:
            nonlocal told
            if not told:
                told = True
                print_json(address) if as_json else say(f"Teach at {address['url']}")

        classroom = Classroom(home, settings, on_open)
        signal.signal(signal.SIGTERM, signal.default_int_handler)  # the same as Ctrl-C
        app = make_app(classroom, port, token)
        with tempfile.TemporaryDirectory(prefix="nightschool-") as folder, listening(app, HERE, socket):

            def start(checkpoint: Path, _: Sequence[int]) -> Engine:
                return Engine(checkpoint, settings, Path(folder), home.root / LOG)

            serving = Serving(home, registry, classroom, start, classroom.open, say)
            say(f"Starting the classroom of {settings.name}; Ctrl-C ends it.")
            try:
                serving.run(wanted)
            finally:
                classroom.close("the classroom is closed", 0)
                serving.end()
