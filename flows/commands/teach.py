"""`nightschool teach`: open the classroom, as a local web page or in the terminal."""

import datetime
import os
import secrets
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Sequence
from contextlib import AbstractContextManager, ExitStack
from functools import partial
from pathlib import Path
from socket import socket
from typing import TYPE_CHECKING, Annotated

import typer

from conf.sections.hours import clocks_in
from conf.storage.home import Home, InputError
from conf.storage.locks import refuse_if_night_running, refuse_second_server, running_night
from flows.commands.options import AsJson, Config, Overrides, configuration, print_json
from flows.commands.serve import IMPATIENT
from flows.web.address import HERE, Address, listener, named_address

if TYPE_CHECKING:  # the classroom's libraries take seconds to import
    from flows.teaching.classroom import Classroom

NIGHT_LOG = "night.log"  # under the home: what a night that was started from the page prints


def teach(
    port: Annotated[int, typer.Option(help="port of the page", min=1, max=65535)] = 8010,
    terminal: Annotated[bool, typer.Option("--terminal", help="teach in this terminal, for example over ssh")] = False,
    chat: Annotated[bool, typer.Option("--chat", help="with --terminal: one answer at a time, as a chat")] = False,
    share: Annotated[
        str,
        typer.Option(metavar="ADDRESS", help="this machine's address: teach from one other device in its network"),
    ] = "",
    config: Config = None,
    overrides: Overrides = None,
    as_json: AsJson = False,
) -> None:
    """Teach the model that serves by day, until Ctrl-C: ask, see five answers, pick one (docs/how-to/teach.md).

    The model learns from each click at once, and its next answers show the effect. You can undo any lesson. The journal
    keeps the lessons for the night. --json prints one line, {url, port, token}, once the page is ready.
    """
    if terminal and as_json:
        raise InputError("--terminal: the page's address is printed by --json; leave one of them out")
    if chat and not terminal:
        raise InputError("--chat: is for --terminal; the page has a switch for it")
    if share and terminal:
        raise InputError("--share: is for the page; leave --terminal out")
    token = secrets.token_urlsafe(32)
    address = named_address(share, password=token, option="--share") if share else HERE
    home, settings = Home.here(), configuration(config, overrides)
    refuse_if_night_running(home.root)
    refuse_second_server(home.root)
    with ExitStack() as stack:
        taken = None if terminal else stack.enter_context(listener(address, port))
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="nightschool-")))
        os.environ.update(IMPATIENT)
        from flows.teaching.classroom import Classroom  # after the first checks: the libraries take a while to import

        home.make_private()
        classroom = Classroom(home, settings)
        classroom.start_night = partial(start_night, home, config, overrides or [])
        announce = (lambda _: None) if as_json else partial(print, flush=True)
        announce(f"Starting the classroom of {settings.name}; Ctrl-C ends it.")
        left = threading.Event()  # whether the owner has left the session in the terminal
        if taken is None:
            _teach_in_terminal(classroom, chat, left)
        else:  # the page is there before the model
            stack.enter_context(_page(classroom, address, port, taken, token, as_json))
        from flows.serving.supervisor import Serving
        from flows.teaching.day import LOG
        from flows.teaching.engine import Engine
        from tasks.journal.carry_over import prepare_home
        from tasks.monitoring.day_record import DayRecord

        def start(checkpoint: Path, _: Sequence[int]) -> Engine:
            return Engine(checkpoint, settings, folder, home.root / LOG)

        serving = Serving(home, settings, classroom, start, classroom.open, announce)
        prepare_home(home)
        record = DayRecord(home, settings)
        classroom.on_lesson = record.lesson
        try:
            serving.run()
        except KeyboardInterrupt:
            if not left.is_set():
                raise
        finally:
            classroom.close("the classroom is closed", 0)
            record.close()


def start_night(home: Home, config: Path | None, overrides: Sequence[str]) -> Path:
    """Start tonight's night in a process of its own, which outlives this one. Return the file that it prints to.

    Raises InputError if tonight's night is finished already, or ends before it has begun.
    """
    from flows.run.dates import date_of_night
    from flows.run.preflight import finished_summary

    now = clocks_in(configuration(config, list(overrides)).deadline_time_zone)
    if finished_summary(home, date := date_of_night(now)):
        following = datetime.date.fromisoformat(date) + datetime.timedelta(days=1)
        if following > now.date():
            raise InputError(f"the night of {date} is finished; the next one can start from noon of {following} on")
        raise InputError(
            f"the night of {date} is finished; for another one now, run: nightschool night --date {following}"
        )
    log, settings = home.root / NIGHT_LOG, [f"--set={each}" for each in overrides]
    command = [sys.executable, "-m", "flows", "night", *(["--config", str(config)] if config else []), *settings]
    environment = {name: value for name, value in os.environ.items() if name not in IMPATIENT}
    with log.open("ab") as output:
        night = subprocess.Popen(
            command, stdin=subprocess.DEVNULL, stdout=output, stderr=output, env=environment, start_new_session=True
        )
    while running_night(home.root) is None:
        if night.poll() is not None:
            raise InputError(log.read_text(errors="replace").strip().rpartition("\n")[2])
        time.sleep(0.2)
    return log


def _page(
    classroom: "Classroom", address: Address, port: int, taken: socket, token: str, as_json: bool
) -> AbstractContextManager[None]:
    """Serve a classroom's page on a port, and print its link: at once or, as JSON, once the classroom is open.

    On loopback, the link works in any browser of this machine. Elsewhere, it works once, and has a QR code.
    """
    from flows.serving.proxy import listening
    from flows.teaching.app import make_app

    link = {"url": f"{address.url(port)}/#t={token}", "port": port, "token": token}
    if as_json:
        classroom.on_first_open = lambda: print_json(link)
    else:
        print(f"Teach at {link['url']} (the model takes about a minute to load)", flush=True)
    if address != HERE and not as_json:
        import segno

        segno.make(link["url"]).terminal(compact=True)
        print("The link works for one device. What you teach travels unencrypted: only use a network that you trust.")
    return listening(make_app(classroom, port, token, once=address != HERE), address, taken)


def _teach_in_terminal(classroom: "Classroom", chat: bool, left: threading.Event) -> None:
    """Start a session in this terminal once the classroom opens. When it ends, set `left` and end the command."""
    from flows.teaching.terminal import run

    def session() -> None:
        try:
            run(classroom, chat)
        finally:
            left.set()
            os.kill(os.getpid(), signal.SIGINT)

    classroom.on_first_open = threading.Thread(target=session, daemon=True).start
