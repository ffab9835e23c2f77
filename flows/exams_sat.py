"""How often the same problems have decided already: each time may have promoted somebody by luck."""

from typing import Any

from conf.home import Home
from conf.schema import NightConfig
from flows.history import config_of
from tasks.replay import examined


def exams_sat_before(home: Home, date: str, config: NightConfig) -> int:
    """The nights before `date` of the same model that put the same target problems to a candidate of their own.

    A night whose candidate was the champion itself tested nothing.
    """
    return sum(
        (known := config_of(home.night(night))) is not None
        and known.name == config.name
        and _problems(known) == _problems(config)
        for night, sat in examined(home.nights, date)
        if sat["candidate"] != sat["champion"]
    )


def _problems(config: NightConfig) -> list[dict[str, Any]]:
    return [part.model_dump(exclude={"margin"}) for part in config.exam.targets]
