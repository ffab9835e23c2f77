"""The owner's day at night: rebuild the day copy, decide whether to begin with it, and ask what was corrected again."""

import json
from pathlib import Path

from conf.schema import NightConfig
from conf.sections.teaching import TeachConfig
from tasks.evaluation.taste import compare_taste, favours
from tasks.journal.freeze import frozen_lessons
from tasks.journal.tables import CORRECTIONS
from tasks.rollouts.verified import Player, sample_verified
from tasks.stage import Artifact, stage
from tasks.tables import read_table
from tasks.teaching import learner_process
from tasks.teaching.lessons import Lesson, lessons_without, why_only_tonight
from tasks.training.examples import ExampleReader
from tasks.training.take_back import LEVEL, p_worse
from tasks.workers.worker import Worker

MOST = 20  # corrections that are asked again; the newest


def lessons_of_day(champion: Path, day: Artifact, config: NightConfig, journal: Path) -> list[Lesson]:
    """Return the lessons in the frozen journal `day` that the day copy learns and `champion` has not learned yet."""
    frozen, lessons = frozen_lessons(day), lessons_without(champion, journal)
    tonights = (lesson for lesson in lessons if frozen.issuperset(lesson.names))
    return [lesson for lesson in tonights if not why_only_tonight(lesson, config.unseen_share)]


@stage(retries=2, resources=("journal", "checkpoints", "trainer"))
def replay_day(
    folder: Path,
    *,
    day: Artifact,
    champion: Path,
    config: NightConfig,
    teach: TeachConfig,
    journal: Path,
    checkpoints: Path,
    trainer: Worker,
) -> None:
    """Rebuild the day copy from its lessons, in order, and keep its adapter as a checkpoint.

    `day`: the frozen journal; later lessons are left out. `teach`: the night's settings, which the classroom also uses
    unless its command line sets others. `day.json` has the number of `lessons` and the number `learned`.
    `checkpoint.txt` names the adapter or, if there is none, the champion.
    """
    lessons = lessons_of_day(champion, day, config, journal)
    config = config.model_copy(update={"teach": teach})
    adapter, count = trainer.call(learner_process.keep_day_copy, champion, config, lessons, checkpoints)
    (folder / "day.json").write_text(json.dumps({"lessons": len(lessons), "learned": count}))
    (folder / "checkpoint.txt").write_text((adapter or champion).name)


@stage()
def choose_start(
    folder: Path,
    *,
    champion: Artifact | None,
    day: Artifact | None,
    champion_picks: Artifact | None,
    day_picks: Artifact | None,
    alpha: float,
    refused: str = "",
) -> None:
    """Write `start.json`: whether the night begins with the day copy (`day`: true) or the champion, and the `reasons`.

    The day copy must favour your held-out picks more than the champion does (exact one-sided paired test at `alpha`)
    and do no worse in the quiz. `champion`, `day`: their quizzes, if taken. `refused`: why there is no day copy.
    """
    begins, taste = False, compare_taste(champion_picks, day_picks, alpha)
    if refused:
        reasons = [refused]
    elif champion_picks is None or day_picks is None:
        reasons = ["The held-out picks were not ranked."]
    elif taste is None:
        reasons = ["There are too few held-out picks to compare it with the champion."]
    else:
        begins = taste.p_value <= alpha
        reasons = [f"Of your held-out picks, it {favours(taste)}{'' if begins else ': not enough'}."]
        if champion is not None and day is not None and (p_value := p_worse(champion, day)) < LEVEL:
            begins = False
            reasons.append(f"In the quiz it does worse than the champion (p = {p_value:.4f}).")
    (folder / "start.json").write_text(json.dumps({"day": begins, "reasons": reasons}))


@stage(retries=2)
def ask_again(folder: Path, *, day: Artifact, lessons: tuple[str, ...], player: Player) -> None:
    """Write a checkpoint's answers to the newest corrected questions among these lessons of the frozen journal.

    `answers.json` is a list of `question` (the last message), `correction` and `answer`.
    """
    table = read_table(day.folder / "corrections.parquet", CORRECTIONS)
    table = table[table.lesson.isin(lessons)].sort_values("day", kind="stable").tail(MOST)
    reader = ExampleReader(player.checkpoint, player.student, (), player.config.max_model_len - 1)
    asked = [(row, prompt) for row, prompt in reader.prompts(table) if reader.fits(prompt)]
    answers = []
    if asked:
        groups, _ = sample_verified(player, [prompt for _, prompt in asked], 1, seed=0)
        answers = [
            {"question": json.loads(row.messages)[-1]["content"], "correction": row.correction}
            | {"answer": answer.text.strip()}
            for (row, _), (answer,) in zip(asked, groups, strict=True)
        ]
    (folder / "answers.json").write_text(json.dumps(answers))
