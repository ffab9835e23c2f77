"""Ports: those of the pages, and whether one can be listened on."""

import socket

from conf.home import InputError
from flows.address import LOOPBACK, Address

PREFECT_PORT, MLFLOW_PORT = 4200, 5000  # where their pages are, where nobody names others


def is_free(port: int, host: str = LOOPBACK) -> bool:
    """Whether nobody listens on a port of an address of this machine."""
    with socket.socket(Address(host).family) as probe:
        # like uvicorn: what a server that has just ended left behind does not block the next
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind((host, port))
        except OSError:
            return False
    return True


def free_port() -> int:
    """A port on loopback that nobody listens on."""
    with socket.socket() as probe:
        probe.bind((LOOPBACK, 0))
        return probe.getsockname()[1]


def require_free(port: int, host: str, option: str) -> None:
    """Raises InputError, in the name of the option, for a port that is taken: what listens there would be asked
    in the place of ours.
    """
    if not is_free(port, host):
        raise InputError(
            f"{option}: {port} is taken by another program (ss -ltnp 'sport = :{port}' names it); "
            f"end that, or take another port: {option} {port + 1}"
        )
