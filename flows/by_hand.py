"""An alias that its owner moved shows on Prefect's pages too: as a run, and in the table of who served since when."""

import sys

from prefect import State, flow
from prefect.states import Completed

from conf.home import Home
from conf.schema import NightConfig
from flows.open_registry import open_registry
from flows.prefect_server import prefect_api
from tasks.promote import show_who_serves


@flow(name="by-hand", flow_run_name="{by} to version {version}", description="The owner moved the alias that serves.")
def moved_by_hand(by: str, version: str, config: NightConfig) -> State[None]:
    """The move itself is done already: no server may stand between an owner and a rollback."""
    registry = open_registry(Home.here(), config)
    if registry is not None:
        show_who_serves(registry)
    return Completed(message=f"{by}: version {version} serves by day.")


def tell_prefect(by: str, version: str, config: NightConfig) -> None:
    """Leaves a run on the pages of the home's server; one that does not answer costs nothing but a line."""
    try:
        with prefect_api(Home.here().root, None):
            moved_by_hand(by, version, config)
    except Exception as error:  # whatever a server comes up with
        print(f"nightschool: done, but Prefect's pages do not show it: {error}", file=sys.stderr)
