"""The log of the program, as pytest records it."""

import logging

import pytest


@pytest.fixture
def logged(caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch) -> pytest.LogCaptureFixture:
    """What is logged as `nightschool`, warnings and worse."""
    monkeypatch.setattr(logging.getLogger("nightschool"), "propagate", True)
    caplog.set_level(logging.WARNING, "nightschool")
    return caplog
