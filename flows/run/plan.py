"""`nightschool night --plan`: what a night would do, and about how long each part takes on this machine."""

import json
import math

from conf.load import config_of
from conf.schema import NightConfig
from conf.sections.hours import clocks_in
from conf.storage.home import SUMMARY, Home
from flows.run.context import check_identity
from flows.run.dates import Hours, check_deadline
from flows.run.history import expected_start, first_start, last_finished
from flows.run.levels import with_next_level
from flows.run.preflight import check_plan, finished_summary
from flows.run.speed import expected, minutes_left
from tasks.evaluation.decide import MASTERED
from tasks.journal.freeze import waiting

LESSONS = {
    "lessons": "what you taught: corrections, words, praise and picks",
    "self_distill": "the student's own right answers to hard problems",
}


def plan(home: Home, config: NightConfig, date: str, fresh: bool = False) -> list[tuple[str, str]]:
    """Return the parts of the night of a date in their order, each with what it does and, where known, its seconds.

    `fresh`: plan the night as if it had not begun. Raises InputError if one of the night's checks fails.
    """
    config, started = with_next_level(config, home, date), None if fresh else first_start(home.night(date))
    is_finished = not fresh and finished_summary(home, date) is not None
    if not started:
        check_deadline(config, date, clocks_in(config.deadline_time_zone))
    if not is_finished:
        if not fresh:
            check_identity(home.night(date), config)
        check_plan(home, config, resumed=started is not None)
    minutes, known, grpo = minutes_left(config, date, started), expected(home, config, date), config.grpo
    weights = "adapters" if config.lora else "all weights"
    exam = ", ".join(
        f"{part.name} ({f'up to {part.problems}' if part.problems else 'all'})" for part in config.exam.parts
    )
    state = "finished" if is_finished else "begun" if started else "new"
    new = waiting(home.journal, date, expected_start(home, config, date), config.unseen_share)
    limited = "no time limit" if math.isinf(Hours.of(config, date, started).end) else "its time is over"
    time = limited if minutes is None else f"{minutes:.0f} minutes"
    lines = [
        ("night", f"{date}, {state}, {time}, in {home.root}"),
        ("student", f"the champion (at first, {config.student.source}); trains {weights}"),
        ("practice", ", ".join(benchmark.label for benchmark in config.benchmarks)),
        ("journal", ", ".join(f"{kind}: {count}" for kind, count in sorted(new.items())) or "nothing new"),
    ]
    for step in config.steps:
        if step.kind == "distill" and known and not known.steps:
            lines.append(("lesson", "no new worked solutions"))
        elif step.kind == "distill":
            lesson = f"up to {config.distill.steps} steps of {config.distill.batch_size} examples"
            pace = f", about {known.step:.1f} s a step with its rehearsal" if known else ""
            fits = f"; about {known.steps_that_fit(minutes)} fit" if known and minutes is not None else ""
            lines.append(("lesson", lesson + pace + fits))
        elif step.is_block:
            block = (
                f"up to {len(step.rounds)} rounds of {grpo.prompts_per_round} prompts × {grpo.group_size} completions"
            )
            lines.append(("rounds", block + (f", about {known.round:.0f} s each" if known else "")))
        else:
            lines.append(("lesson", LESSONS.get(step.kind, step.kind)))
    if known and minutes is not None and config.rounds:
        fit = min(config.rounds, known.rounds_that_fit(minutes))
        lines.append(("", f"about {fit} of the {config.rounds} rounds fit into the time"))
    then = "promoted only if a paired test shows a gain and no guard fails"
    return [*lines, ("exam", exam), ("then", _mastered(home, config, date) or then)]


def _mastered(home: Home, config: NightConfig, date: str) -> str:
    """Return what the last finished night of the same exam said of a mastered exam, or an empty text."""
    last = last_finished(home.nights, config.name, date)
    if last and (before := config_of(last)) and before.exam.target == config.exam.target:
        return MASTERED if MASTERED in json.loads((last / SUMMARY).read_text())["reasons"] else ""
    return ""
