"""Connects the night to a Ray cluster, but not to one that strangers could use."""

import os
import signal
import subprocess
import sys
import threading
from ipaddress import ip_address

from conf.storage.home import InputError

HELP = "see docs/how-to/a-cluster.md, or leave it out: --set cluster.address=null"
PATIENCE = 120  # seconds for a cluster to answer; a busy machine takes half of that to import Ray
REFUSED = "AuthenticationError"  # how Ray names a missing token
PRIVATE = {"RAY_USAGE_STATS_ENABLED": "0", "RAY_ACCEL_ENV_VAR_OVERRIDE_ON_ZERO": "0"}


def connect(address: str) -> None:
    """Connect this process to a cluster if it has no connection yet. `address`: `host:port`, or `auto` for a local one.

    Raises InputError if Ray is not installed, if no cluster answers, or if other machines can reach the cluster and it
    does not prove to ask for a token: whoever can call a cluster can run any program on its machines.
    """
    os.environ.update({name: os.environ.get(name, value) for name, value in PRIVATE.items()})
    try:
        import ray
    except ImportError as error:
        raise InputError(f"cluster.address: Ray is not installed; uv pip install -e '.[cluster]', or {HELP}") from error
    if ray.is_initialized():
        return
    on_main = threading.current_thread() is threading.main_thread()
    handler = signal.getsignal(signal.SIGTERM)
    try:
        ray.init(address=address, log_to_driver=False, configure_logging=False)
        reached = ray.get_runtime_context().gcs_address
    except Exception as error:  # of many kinds: no cluster, a wrong token, another version of Ray or Python
        why = " ".join(str(error).split())[:200]
        raise InputError(f"cluster.address: {address} is no Ray cluster that can be used ({why}); {HELP}") from error
    finally:
        if on_main:  # Ray's own handler would end the process at once
            signal.signal(signal.SIGTERM, handler)
    if not is_loopback(reached) and (danger := danger_of(reached)):
        ray.shutdown()
        raise InputError(f"cluster.address: {danger}: {HELP}")


def is_loopback(address: str) -> bool:
    """Return whether an address (`host:port`) can be reached only from its own machine."""
    host = address.rpartition(":")[0].strip("[]")
    return host == "localhost" or ip_address(host).is_loopback


def danger_of(address: str) -> str | None:
    """Call a cluster without a token. Return what is wrong if it does not refuse the call for that, else None."""
    command = [sys.executable, "-c", "import ray.scripts.scripts as scripts; scripts.main()", "health-check"]
    known = {name: value for name, value in os.environ.items() if not name.startswith("RAY_AUTH")}
    try:
        answer = subprocess.run(
            [*command, "--address", address],
            env=known | {"RAY_AUTH_MODE": "disabled"},
            capture_output=True,
            text=True,
            timeout=PATIENCE,
        )
    except subprocess.TimeoutExpired:
        return f"the cluster at {address} did not say within {PATIENCE} s whether it requires a token; try again"
    if REFUSED in answer.stderr:
        return None
    if answer.returncode == 0:
        return (
            f"the cluster at {address} requires no token, so anyone who reaches it can run programs on its machines; "
            "start it with RAY_AUTH_MODE=token"
        )
    why = (answer.stderr.strip().splitlines() or ["no reason given"])[-1][:200]
    return f"the cluster at {address} did not say whether it requires a token ({why}); try again"
