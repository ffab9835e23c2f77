"""`nightschool serve`: serve the model with the alias `daytime` to programs, over OpenAI's protocol."""

import os
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated

import typer

from conf.storage.home import Home
from conf.storage.journal import TODAY
from conf.storage.locks import refuse_second_server
from flows.commands.options import Config, Overrides, configuration
from flows.web.address import LOOPBACK, listener, named_address

KEY = "NIGHTSCHOOL_SERVE_KEY"  # the environment variable with the key that clients on other machines need
LOG = "serve.log"  # vLLM's log, under the home
# If the registry is down, fail at once and ask again soon. A server busy with long retries would hold up a night.
IMPATIENT = {"MLFLOW_HTTP_REQUEST_MAX_RETRIES": "0", "MLFLOW_HTTP_REQUEST_TIMEOUT": "10"}


def serve(
    port: Annotated[int, typer.Option(help="port to serve on", min=1, max=65535)] = 8000,
    host: Annotated[
        str, typer.Option(help="address to serve on; other machines' clients need the key in NIGHTSCHOOL_SERVE_KEY")
    ] = LOOPBACK,
    record: Annotated[
        bool, typer.Option("--record", help="keep conversations in the journal, and take feedback on them")
    ] = False,
    config: Config = None,
    overrides: Overrides = None,
) -> None:
    """Serve the model with the alias `daytime` over OpenAI's protocol until Ctrl-C (docs/how-to/serve-by-day.md).

    When the alias moves, the server loads the new checkpoint. While a night runs on this home, serving pauses. Nothing
    is recorded without --record.
    """
    home, settings = Home.here(), configuration(config, overrides)
    address = named_address(host, KEY)
    refuse_second_server(home.root)
    with listener(address, port) as socket_, tempfile.TemporaryDirectory(prefix="nightschool-") as folder:
        os.environ.update(IMPATIENT)
        from flows.serving.proxy import Gate, listening  # after the first checks: the libraries take seconds to import
        from flows.serving.recording import Recorder
        from flows.serving.supervisor import Serving
        from flows.serving.vllm_server import NAME, EngineServer
        from flows.teaching import day

        gate = Gate(address.password, Recorder(home.journal, settings.unseen_share) if record else None)

        def start(checkpoint: Path, holds: Sequence[int]) -> EngineServer:
            today, missing = day.saved(home, settings, checkpoint)
            if today:
                lacks = f", except the last {missing} lesson{'s' * (missing > 1)}" if missing else ""
                print(f"Also serving {TODAY!r}, which has learned what was taught by day{lacks}.", flush=True)
            return EngineServer(checkpoint, settings, Path(folder), home.root / LOG, holds, today)

        def opened(engine: EngineServer) -> bool:
            gate.open(engine.socket)
            return True

        serving = Serving(home, settings, gate, start, opened)
        home.make_private()
        with listening(gate, address, socket_):
            if record:
                print(f"Conversations are recorded in {home.journal}.", flush=True)
            print(f"Starting the model {NAME!r} on {address.url(port)}/v1; Ctrl-C ends it.", flush=True)
            serving.run()
