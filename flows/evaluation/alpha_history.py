"""How often the same problems have decided already: each time may have promoted somebody by luck."""

import itertools

from conf.load import config_of
from conf.schema import NightConfig
from conf.sections.benchmark import ExamPart
from conf.storage.durable import write_atomically
from conf.storage.home import Home
from tasks.journal.lineage import examined

# What of a part says nothing of the answers that decide: where its problems begin and end is looked at by itself.
DECIDES_NOT = {"margin", "samples", "temperature", "after", "problems"}


def earlier_exams(home: Home, date: str, config: NightConfig) -> int:
    """`exams_sat_before`, counted when the night first asks: what it decided stays, whatever is finished since."""
    note = home.night(date) / "earlier_exams.txt"
    if not note.exists():
        write_atomically(note, str(exams_sat_before(home, date, config)))
    return int(note.read_text())


def exams_sat_before(home: Home, date: str, config: NightConfig) -> int:
    """The nights before `date` of the same model that may have put any of the same target problems to a candidate of
    their own.

    A night whose candidate was the champion itself tested nothing.
    """
    return sum(
        (known := config_of(home.night(night))) is not None
        and known.name == config.name
        and any(_overlap(one, other) for one, other in itertools.product(known.exam.targets, config.exam.targets))
        for night, sat in examined(home.nights)
        if night < date and sat["candidate"] != sat["champion"]
    )


def _overlap(one: ExamPart, other: ExamPart) -> bool:
    """Whether two parts may have problems in common: parts of one benchmark and a common level, whatever else differs.

    Only of parts that differ in nothing else is it known where their problems begin and end in the same order. So what
    in truth is apart may be counted, which makes α smaller than it had to be; what is shared is never left out.
    """
    if one.benchmark != other.benchmark or (one.levels and other.levels and not {*one.levels} & {*other.levels}):
        return False
    alike = one.model_dump(exclude=DECIDES_NOT) == other.model_dump(exclude=DECIDES_NOT)
    return not alike or max(one.after, other.after) < min(one.after + one.problems, other.after + other.problems)
