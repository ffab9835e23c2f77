"""Where the pages may listen: on loopback without further ado, elsewhere only behind a password."""

import socket

import pytest

from conf.storage.home import InputError
from flows.web.address import HERE, PASSWORD, Address, named_address


def own_address() -> str:
    """An address of this machine that is not loopback; nothing is sent."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as probe:
        try:
            probe.connect(("192.0.2.1", 9))
        except OSError:
            pytest.skip("this machine has no address but loopback")
        return probe.getsockname()[0]


def refused(host: str) -> str:
    with pytest.raises(InputError) as caught:
        named_address(host)
    assert "\n" not in str(caught.value)
    return str(caught.value)


@pytest.mark.parametrize("host", ["127.0.0.1", "localhost"])
def test_loopback_needs_no_password(host: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(PASSWORD, "s3cret")
    assert named_address(host) == HERE == Address("127.0.0.1", None)


@pytest.mark.parametrize("password", [None, "", "pässword"])
def test_another_address_wants_a_password_first(password: str | None, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv(PASSWORD, raising=False)
    if password is not None:
        monkeypatch.setenv(PASSWORD, password)
    host = own_address()
    said = f"others can reach {host}: set a password (in ASCII) in NIGHTSCHOOL_UI_PASSWORD first, or leave --host out"
    assert refused(host) == f"--host: {said}"


def test_another_address_with_a_password(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(PASSWORD, "s3cret")
    host = own_address()
    assert named_address(host) == Address(host, "s3cret")


@pytest.mark.parametrize("host", ["0.0.0.0", ""])
def test_all_addresses_at_once_are_none(host: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(PASSWORD, "s3cret")
    assert "is every address at once; name the one" in refused(host)


@pytest.mark.parametrize("host", ["192.0.2.1", "no such host", "256.0.0.1"])
def test_what_is_no_address_of_this_machine(host: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(PASSWORD, "s3cret")
    assert refused(host).startswith(f"--host: {host} is no address of this machine (")


def test_what_it_is_called() -> None:
    assert HERE.names == ["127.0.0.1", "localhost"]
    assert Address("192.0.2.7", "s3cret").names == ["192.0.2.7"]
    assert Address("2001:db8::7", "s3cret").url(4200) == "http://[2001:db8::7]:4200"
    assert HERE.url(5000) == "http://127.0.0.1:5000"
