"""Why does it say that? How likely an answer was under each champion so far, and after each of the day's lessons."""

import itertools
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from conf.schema import NightConfig
from conf.storage.home import Home
from flows.teaching.book import summary_of
from flows.teaching.day import Day
from tasks.teaching import learner_process

CHAMPIONS = 5  # the most earlier champions that are asked; each is loaded for this


def history(day: Day, messages: Sequence[dict[str, str]], answer: str, finished: bool) -> list[dict[str, Any]]:
    """Return how likely an answer was at each step, oldest first: {kind, what, when, lesson, logprob, moved}.

    The steps are the champions of earlier nights that are still kept, the champion (`kind` is "champion" for all of
    these, and `what` says what made it serve), and the day's lessons (`kind` as in `entries.KINDS`, `what` is taught,
    `lesson` the id). After a restart, or once there are many, the first lessons are one step without a `lesson`, of
    kind "lessons": no snapshot tells them apart. `logprob`: the answer's log-probability in nats. `moved`: its change
    since the step before.
    """
    about = messages, answer, finished
    steps = list[dict[str, Any]]()
    for folder, by, at in earlier_champions(day.home, day.config, day.champion.name):
        logprob = day.ask(learner_process.logprob_under, folder, day.config, *about)
        steps.append({"kind": "champion", "what": by, "when": at, "lesson": "", "logprob": logprob})
    for name, count, logprob in day.ask(learner_process.history, *about):
        step = {"kind": "champion", "what": "serves now", "when": "", "lesson": "", "logprob": logprob}
        if count > 1:
            step |= {"kind": "lessons", "what": f"today's first {count} lessons"}
        elif lesson := day.book.lessons.get(name):
            summary = summary_of(lesson)
            step |= {"kind": summary["kind"], "what": summary["text"] or summary["question"]}
            step |= {"when": lesson.entries[0].at, "lesson": name}
        steps.append(step)
    moves = [0.0, *(after["logprob"] - before["logprob"] for before, after in itertools.pairwise(steps))]
    return [step | {"moved": moved} for step, moved in zip(steps, moves, strict=True)]


def earlier_champions(home: Home, config: NightConfig, champion: str) -> Iterator[tuple[Path, str, str]]:
    """Yield the latest champions before this one that are still kept: folder, what made it serve, and when."""
    from flows.web.health import open_registry  # MLflow takes seconds to import

    registry = open_registry(home, config)
    if registry is None:
        return
    digests = {version.version: version.digest for version in registry.versions()}
    served = {digests[move.version]: move for move in registry.moves() if move.version in digests}
    kept = [(home.checkpoints / digest, move.by, move.at) for digest, move in served.items() if digest != champion]
    yield from [found for found in kept if found[0].is_dir()][-CHAMPIONS:]
