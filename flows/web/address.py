"""Addresses and ports of servers, which listen on loopback or on an address that the owner protects with a password."""

import ipaddress
import os
import socket
from dataclasses import dataclass

from conf.storage.home import InputError

LOOPBACK = "127.0.0.1"
USER = "nightschool"
PASSWORD = "NIGHTSCHOOL_UI_PASSWORD"  # the environment variable with the owner's password; MLflow's pages read it, too
HOSTS = "NIGHTSCHOOL_PAGES_HOSTS"  # the environment variable with the host names that Prefect's server accepts
PREFECT_PORT, MLFLOW_PORT = 4200, 5000  # the pages' default ports


@dataclass(frozen=True)
class Address:
    """The host that servers listen on, and the password that they require (None on loopback)."""

    host: str = LOOPBACK
    password: str | None = None

    def url(self, port: int) -> str:
        """Return the URL of a port on this host."""
        return f"http://{self.host}:{port}"

    @property
    def key(self) -> str | None:
        """The credentials for Prefect's server as user:password, or None if there is no password."""
        return f"{USER}:{self.password}" if self.password else None

    @property
    def names(self) -> list[str]:
        """The host names that a server answers to. Requests for other names may be DNS rebinding attacks."""
        return [self.host] if self.password else [LOOPBACK, "localhost"]


HERE = Address()


def named_address(host: str, variable: str = PASSWORD, password: str | None = None, option: str = "--host") -> Address:
    """Return a host's address. Unless it is loopback, it needs a password: by default the one in `variable`.

    `variable`: an environment variable. `option`: the command-line option that the message names.
    """
    try:
        with socket.create_server((host, 0)) as probe:
            address = ipaddress.ip_address(probe.getsockname()[0])
    except OSError as error:
        raise InputError(
            f"{option}: {host} is not an address of this machine ({error.strerror}); `ip address` lists them"
        ) from None
    if address.is_loopback:
        return HERE
    if address.is_unspecified:
        raise InputError(f"{option}: {host} means every address; name the one by which others reach this machine")
    password = password or os.environ.get(variable)
    if not password or not password.isascii():  # Prefect cannot compare other passwords
        raise InputError(
            f"{option}: others can reach {host}: first set a password (in ASCII) in {variable}, or leave {option} out"
        )
    return Address(host, password)


def free_port() -> int:
    """Return a free port on loopback."""
    with socket.create_server((LOOPBACK, 0)) as probe:
        return probe.getsockname()[1]


def listener(address: Address, port: int, option: str = "--port") -> socket.socket:
    """Return a socket that listens at the address and port. Raises InputError if the port is not available.

    `option`: the command-line option that the message names.
    """
    try:
        return socket.create_server((address.host, port))
    except OSError as error:
        reason = os.strerror(error.errno or 0)  # Python's own message repeats the address
        raise InputError(
            f"{option}: {address.url(port)} is not available ({reason}); name another, or end what listens there "
            f"(ss -ltnp 'sport = :{port}' names it)"
        ) from None
