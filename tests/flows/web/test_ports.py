"""Ports that are taken are found out before a server is asked to listen there."""

import socket

import pytest

from conf.storage.home import InputError
from flows.web.address import free_port, is_free, require_free


def test_a_port_is_free_until_somebody_listens() -> None:
    port = free_port()
    assert is_free(port)
    with socket.create_server(("127.0.0.1", port)):
        assert not is_free(port)


def test_the_option_is_named_and_another_port() -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = server.getsockname()[1]
        with pytest.raises(InputError) as caught:
            require_free(port, "127.0.0.1", "--prefect-port")
    assert str(caught.value) == (
        f"--prefect-port: {port} is taken by another program (ss -ltnp 'sport = :{port}' names it); "
        f"end that, or take another port: --prefect-port {port + 1}"
    )
