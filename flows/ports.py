"""Ports: whether one can be listened on."""

import socket

from conf.home import InputError
from flows.address import LOOPBACK


def is_free(port: int, host: str = LOOPBACK) -> bool:
    """Whether nobody listens on a port of an address of this machine."""
    with socket.socket(socket.AF_INET6 if ":" in host else socket.AF_INET) as probe:
        # like uvicorn: what a server that has just ended left behind does not block the next
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind((host, port))
        except OSError:
            return False
    return True


def require_free(port: int, host: str, option: str) -> None:
    """Raises InputError, in the name of the option, for a port that is taken: what listens there would be asked
    in the place of ours.
    """
    if not is_free(port, host):
        raise InputError(
            f"{option}: {port} is taken by another program (ss -ltnp 'sport = :{port}' names it); "
            f"end that, or take another port: {option} {port + 1}"
        )
