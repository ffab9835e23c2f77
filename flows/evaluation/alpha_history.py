"""How many nights have decided on the same problems: each of them may have promoted a candidate by luck."""

import itertools

from conf.load import config_of
from conf.schema import NightConfig
from conf.sections.benchmark import ExamPart
from conf.storage.durable import write_atomically
from conf.storage.home import Home
from tasks.journal.lineage import examined

# Settings of a part that change no deciding answer; which problems it has is compared apart.
DECIDES_NOT = {"margin", "samples", "temperature", "after", "problems"}


def earlier_exams(home: Home, date: str, config: NightConfig) -> int:
    """Return `count_earlier_exams` as it was when the night first asked: its level of significance stays the same."""
    note = home.night(date) / "earlier_exams.txt"
    if not note.exists():
        write_atomically(note, str(count_earlier_exams(home, date, config)))
    return int(note.read_text())


def count_earlier_exams(home: Home, date: str, config: NightConfig) -> int:
    """Return how many earlier nights of this model may have tested a candidate on some of the same target problems.

    A night whose candidate was the champion itself tested nothing.
    """
    return sum(
        (known := config_of(home.night(night))) is not None
        and known.name == config.name
        and any(_overlap(*parts) for parts in itertools.product(known.exam.targets, config.exam.targets))
        for night, digests in examined(home.nights)
        if night < date and digests["candidate"] != digests["champion"]
    )


def _overlap(first: ExamPart, second: ExamPart) -> bool:
    """Return whether two parts may share problems: the same benchmark and a common level, whatever else differs.

    Only parts that are otherwise equal have their problems in the same order, so that disjoint ranges are known to be
    disjoint. A wrong guess makes α smaller than it had to be, never larger.
    """
    levels = {*(first.levels or ())}, {*(second.levels or ())}
    if first.benchmark != second.benchmark or (all(levels) and not levels[0] & levels[1]):
        return False
    if first.model_dump(exclude=DECIDES_NOT) != second.model_dump(exclude=DECIDES_NOT):
        return True
    return max(first.after, second.after) < min(first.after + first.problems, second.after + second.problems)
