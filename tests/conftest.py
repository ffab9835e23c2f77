"""What takes seconds to start is started once for all tests, and only where a test asks for it."""

import gc
import os
import shutil
import signal
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager, nullcontext
from pathlib import Path
from typing import Any

import pytest
from hypothesis import settings

from conf.storage.home import Home
from flows import environment
from flows.orchestration.server import start_server, wait_until_ready
from flows.run.child import end_child
from flows.web.address import free_port

os.environ.pop("NIGHTSCHOOL_WEBHOOK", None)  # nobody's chat gets the reports of tests
os.environ["PYTHONPATH"] = str(Path(__file__).parents[1])  # processes that tests start import this copy
environment.prepare()  # before any library is imported: tests phone home as little as nights do
os.environ |= {"RAY_AUTH_MODE": "token", "RAY_AUTH_TOKEN": "ab" * 32}  # a process reads them once, at Ray's import
signal.signal(signal.SIGINT, signal.default_int_handler)  # what tests start hears Ctrl-C, be they a background job
settings.register_profile("laws", deadline=None, max_examples=25)  # no deadline: a law holds on slow machines, too
settings.register_profile("thorough", deadline=None, max_examples=500)  # --hypothesis-profile=thorough
settings.load_profile("laws")
# What all test files import are millions of objects, which stay: looking for garbage among them takes a third of a
# second each time, and the trainer's process looks for it whenever a model goes.
gc.disable()


def pytest_collection_finish() -> None:
    """Leave what is imported by now out of all later collections of garbage."""
    gc.freeze()
    gc.enable()


# Files that take long, the longest first: begun last, they would keep one worker busy alone at the end.
LONGEST = (
    "chaos/",
    "flows/test_whole_night.py",
    "flows/teaching/test_teach.py",
    "tasks/workers/",
    "models/test_sampler.py",
    "flows/test_finish.py",
    "tasks/training/",
    "flows/training/",
    "rewards/programs/test_hostile.py",
)


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Put the longest files first; the others keep their order."""
    root = Path(__file__).parent

    def rank(item: pytest.Item) -> int:
        path = item.path.relative_to(root).as_posix()
        return next((place for place, start in enumerate(LONGEST) if path.startswith(start)), len(LONGEST))

    items.sort(key=rank)


class Prefect:
    """A Prefect server as a night starts it, with its database in a folder of its own."""

    def __init__(self) -> None:
        self.folder = Path(tempfile.mkdtemp(prefix="prefect-"))
        self.log = self.folder / "server.log"
        self.process, self.url = start_server(self.folder, free_port(), self.log)

    def wait(self) -> None:
        """Wait until the server answers."""
        wait_until_ready(self.process, self.url, self.log)

    def end(self) -> None:
        """Kill the server and remove its folder."""
        end_child(self.process)
        shutil.rmtree(self.folder, ignore_errors=True)


SHARED = pytest.StashKey[Prefect]()


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_setupnodes(config: pytest.Config) -> None:
    """Start the one server of all xdist workers."""
    config.stash[SHARED] = Prefect()


@pytest.hookimpl(optionalhook=True)
def pytest_configure_node(node: Any) -> None:
    """Tell an xdist worker where the server is."""
    node.workerinput["prefect"] = node.config.stash[SHARED].url


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_node_collection_finished(node: Any) -> None:
    """Wait for the server, which has started while the workers collected."""
    node.config.stash[SHARED].wait()


def pytest_unconfigure(config: pytest.Config) -> None:
    """End the server of all xdist workers."""
    if SHARED in config.stash:
        config.stash[SHARED].end()


@pytest.fixture(scope="session")
def prefect_server(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """Prefect's settings point to a real server, which all xdist workers share."""
    from prefect.settings import (
        PREFECT_API_URL,
        PREFECT_FLOWS_HEARTBEAT_FREQUENCY,
        PREFECT_HOME,
        PREFECT_LOGGING_TO_API_ENABLED,
        temporary_settings,
    )

    shared: str | None = getattr(request.config, "workerinput", {}).get("prefect")
    folder = tmp_path_factory.mktemp("prefect")
    with (
        nullcontext(shared) if shared else _own_server() as url,
        temporary_settings({PREFECT_API_URL: url, PREFECT_HOME: folder}),
        temporary_settings({PREFECT_FLOWS_HEARTBEAT_FREQUENCY: None}),  # a flow would wait a second for its end
        temporary_settings({PREFECT_LOGGING_TO_API_ENABLED: False}),  # no test reads its logs there
    ):
        yield


@contextmanager
def _own_server() -> Iterator[str]:
    server = Prefect()
    try:
        server.wait()
        yield server.url
    finally:
        server.end()


@pytest.fixture(scope="module")  # no longer: it would hold the event loop of other tests
def browser() -> Iterator[Any]:
    """Chromium. Tests that need it are skipped without it."""
    from playwright.sync_api import sync_playwright

    if (chromium := shutil.which("chromium")) is None:
        pytest.skip("needs Chromium (Debian: apt-get install chromium)")
    with sync_playwright() as started:
        found = started.chromium.launch(executable_path=chromium, args=["--no-sandbox"])
        yield found
        found.close()


@pytest.fixture(scope="session")
def _empty_mlflow(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """An MLflow database without a run: its tables take seconds to make."""
    from mlflow import MlflowClient

    home = Home(tmp_path_factory.mktemp("mlflow"))
    MlflowClient(tracking_uri=home.database, registry_uri=home.database).search_experiments()
    return home.database_file


@pytest.fixture
def home_with_mlflow(_empty_mlflow: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[[str], Home]:
    """Makes homes (by name) that have an MLflow database of their own."""
    monkeypatch.delenv("MLFLOW_TRACKING_URI", raising=False)

    def make(name: str = "school") -> Home:
        home = Home(tmp_path / name)
        home.root.mkdir()
        shutil.copy(_empty_mlflow, home.database_file)
        return home

    return make
