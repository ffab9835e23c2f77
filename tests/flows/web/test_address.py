"""Addresses and ports: servers listen on loopback, or elsewhere behind a password, and never on a taken port."""

import socket

import pytest

from flows.web.address import HERE, PASSWORD, Address, free_port, named_address, require_free
from tests.refusal import refusal


def outer_address() -> str:
    """An address of this machine that is not loopback; nothing is sent."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as probe:
        try:
            probe.connect(("192.0.2.1", 9))
        except OSError:
            pytest.skip("this machine has no address but loopback")
        return probe.getsockname()[0]


@pytest.mark.parametrize("host", ["127.0.0.1", "localhost"])
def test_loopback_needs_no_password(host: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(PASSWORD, "s3cret")
    assert named_address(host) == HERE == Address("127.0.0.1", None)


@pytest.mark.parametrize("password", [None, "", "pässword"])
def test_another_address_needs_a_password(password: str | None, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv(PASSWORD, raising=False)
    if password is not None:
        monkeypatch.setenv(PASSWORD, password)
    host = outer_address()
    advice = "first set a password (in ASCII) in NIGHTSCHOOL_UI_PASSWORD, or leave --host out"
    assert refusal(named_address, host) == f"--host: others can reach {host}: {advice}"
    monkeypatch.setenv(PASSWORD, "s3cret")
    assert named_address(host) == Address(host, "s3cret")


@pytest.mark.parametrize(
    ("host", "message"),
    [
        ("0.0.0.0", "means every address; name the one"),
        ("", "means every address; name the one"),
        ("192.0.2.1", "is not an address of this machine ("),
        ("no such host", "is not an address of this machine ("),
    ],
)
def test_other_hosts_are_refused(host: str, message: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(PASSWORD, "s3cret")
    assert refusal(named_address, host).startswith(f"--host: {host} {message}")


def test_names_and_urls() -> None:
    assert HERE.names == ["127.0.0.1", "localhost"]
    assert Address("192.0.2.7", "s3cret").names == ["192.0.2.7"]
    assert HERE.url(5000) == "http://127.0.0.1:5000"


def test_a_port_is_free_until_somebody_listens() -> None:
    port = free_port()
    require_free(port, "127.0.0.1", "--prefect-port")
    with socket.create_server(("127.0.0.1", port)):
        assert refusal(require_free, port, "127.0.0.1", "--prefect-port") == (
            f"--prefect-port: {port} is taken by another program (ss -ltnp 'sport = :{port}' names it); "
            f"end it, or take another port: --prefect-port {port + 1}"
        )
