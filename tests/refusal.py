from collections.abc import Callable

import pytest

from conf.storage.home import InputError


def refusal(call: Callable[..., object], *arguments: object, kind: type[Exception] = InputError) -> str:
    """The one line with which a call is refused."""
    with pytest.raises(kind) as caught:
        call(*arguments)
    assert "\n" not in str(caught.value)
    return str(caught.value)
