"""`nightschool serve`: the model of the alias `daytime`, for the day's lessons."""

import os
import signal
import socket
import sys
import tempfile
from pathlib import Path
from typing import Annotated

import typer

from conf.load import STARTER, load_night
from conf.storage.home import Home, InputError
from flows.commands.options import Config, Overrides
from flows.web.address import LOOPBACK, Address, named_address

KEY = "NIGHTSCHOOL_SERVE_KEY"  # where the key comes from that clients of other machines must have
# A registry that is down is asked again soon; the patience of nights would keep a night waiting for this server.
IMPATIENT = {"MLFLOW_HTTP_REQUEST_MAX_RETRIES": "0", "MLFLOW_HTTP_REQUEST_TIMEOUT": "10"}


def serve(
    port: Annotated[int, typer.Option(help="port to serve on", min=1, max=65535)] = 8000,
    host: Annotated[
        str, typer.Option(help="address to serve on; others must have the key in NIGHTSCHOOL_SERVE_KEY")
    ] = LOOPBACK,
    config: Config = STARTER,
    overrides: Overrides = None,
) -> None:
    """Serves the model that has the alias `daytime`, in OpenAI's protocol, until Ctrl-C (docs/serving.md).

    When the alias moves, the other checkpoint is loaded. While a night runs on this home, the model rests.
    """
    home, settings = Home.here(), load_night(config, overrides or [])
    address = named_address(host, KEY)
    with _listener(address, port) as listener:
        os.environ.update(IMPATIENT)
        from flows.commands.promote import open_registry
        from flows.serving.proxy import Gate, listening
        from flows.serving.supervisor import Serving, checked_daytime, none_yet
        from flows.serving.vllm_server import NAME, EngineFailedError  # after what is said at once

        if (registry := open_registry(home, settings)) is None:
            raise none_yet(settings.name)
        wanted = checked_daytime(home, registry)
        home.own()
        gate = Gate(address.password)
        signal.signal(signal.SIGTERM, signal.default_int_handler)  # as Ctrl-C
        with tempfile.TemporaryDirectory(prefix="nightschool-") as folder, listening(gate, address, listener):
            serving = Serving(home, settings, registry, gate, Path(folder))
            print(f"{address.url(port)}/v1 answers for the model {NAME!r}; Ctrl-C ends it.", flush=True)
            try:
                serving.run(wanted)
            except EngineFailedError as error:
                print(f"nightschool: {error}", file=sys.stderr)
                raise typer.Exit(1) from None
            finally:
                serving.end()


def _listener(address: Address, port: int) -> socket.socket:
    """The port, ours from now on."""
    try:
        return socket.create_server((address.host, port), family=address.family)
    except OSError as error:
        reason = os.strerror(error.errno or 0)  # Python's own says the address again
        raise InputError(
            f"--port: {address.url(port)} cannot be had ({reason}); name another, or end what listens there"
        ) from None
