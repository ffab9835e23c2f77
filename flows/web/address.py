"""Where servers listen: on loopback, or on an address that the owner names, and then behind a password."""

import ipaddress
import os
import socket
from dataclasses import dataclass

from conf.storage.home import InputError

LOOPBACK = "127.0.0.1"
USER = "nightschool"
PASSWORD = "NIGHTSCHOOL_UI_PASSWORD"  # where it comes from, and MLflow's pages read it
HOSTS = "NIGHTSCHOOL_PAGES_HOSTS"  # by which a server of ours is told its names


@dataclass(frozen=True)
class Address:
    """A host, and the password without which nobody is shown anything; none is needed on loopback."""

    host: str = LOOPBACK
    password: str | None = None

    @property
    def name(self) -> str:
        """The host as it stands in a URL."""
        return f"[{self.host}]" if ":" in self.host else self.host

    @property
    def family(self) -> socket.AddressFamily:
        """Which of the two internet protocols it is an address of."""
        return socket.AF_INET6 if ":" in self.host else socket.AF_INET

    def url(self, port: int) -> str:
        """The URL of a port there."""
        return f"http://{self.name}:{port}"

    @property
    def key(self) -> str | None:
        """What Prefect's server asks for there, as user:password; None where it lets everybody in."""
        return f"{USER}:{self.password}" if self.password else None

    @property
    def names(self) -> list[str]:
        """What a browser may call it: any other name is a stranger's that was made to point here (DNS rebinding)."""
        return [self.name] if self.password else [LOOPBACK, "localhost"]


HERE = Address()


def named_address(host: str, variable: str = PASSWORD) -> Address:
    """The address to serve on, and the password that others need there, from an environment variable.

    Raises InputError where it is not this machine's, is all of them at once, or has no password to guard it.
    """
    try:
        with socket.create_server((host, 0), family=Address(host).family) as probe:
            found = ipaddress.ip_address(probe.getsockname()[0])
    except OSError as error:
        raise InputError(
            f"--host: {host} is no address of this machine ({error.strerror}); ip address lists them"
        ) from None
    if found.is_loopback:
        return HERE
    if found.is_unspecified:
        raise InputError(f"--host: {host} is every address at once; name the one by which others reach this machine")
    password = os.environ.get(variable)
    if not password or not password.isascii():  # Prefect cannot compare others
        raise InputError(
            f"--host: others can reach {host}: set a password (in ASCII) in {variable} first, or leave --host out"
        )
    return Address(host, password)


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
