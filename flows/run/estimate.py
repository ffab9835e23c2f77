"""How long a night will still take: by its own rounds so far, and by the stages of the night before."""

import json
import re
from pathlib import Path
from statistics import median

from conf.schema import NightConfig
from conf.storage.layout import MANIFEST, committed_rounds, is_round, round_path
from flows.run.history import round_seconds, seconds_of
from tasks.monitoring.incidents import ended_early

ROUND = re.compile(r"round (\d+)\b")


def seconds_left(folder: Path, config: NightConfig, elapsed: float, before: Path | None) -> float | None:
    """Return about how many seconds a night will still take; None without a night before.

    `elapsed`: seconds since the stage that runs began. `before`: the last finished night of the same name.
    """
    return None if before is None else max(0.0, sum(stages_left(folder, config, before).values()) - elapsed)


def stages_left(folder: Path, config: NightConfig, before: Path) -> dict[str, float]:
    """Return what is still to come, by path, with the seconds it usually takes.

    These are the stages that the night before committed after the last one that tonight has, too; and tonight's rounds,
    without their quizzes.
    """
    manifests = [file for file in before.rglob(MANIFEST) if not is_round(file.relative_to(before).parts[0])]
    manifests.sort(key=lambda file: file.stat().st_mtime)
    usual = {str(file.parent.relative_to(before)): seconds_of(json.loads(file.read_text())) for file in manifests}
    done = [index for index, path in enumerate(usual, 1) if (folder / path / MANIFEST).exists()]
    left = dict(list(usual.items())[max(done, default=0) :])
    if ended_early(folder) is None and (pace := round_seconds(folder) or round_seconds(before)):
        rounds = range(len(committed_rounds(folder)) + 1, config.rounds + 1)
        left |= {round_path(number): median(pace) for number in rounds}
    return left
