"""Which parts of a night improve the quiz after it? Full days, each with one part left out.

    python -m benchmarks.what_helps [--seeds 1 2 3] [--variants all "without words" …]

Each finished night is a line in docs/what-helps.jsonl and is not run again on this machine at this commit; interrupted
nights resume. The queried and the on-policy teacher are a starter trained further (benchmarks/local_teacher.py). Writes
the table between the markers in docs/performance.md; `--variants none` runs no night.
"""

import argparse
import statistics
import sys
from collections.abc import Iterator, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path

from benchmarks.inputs.school import SCHOOL, make
from benchmarks.inputs.starter import starter, studied
from benchmarks.local_teacher import PORT, served
from benchmarks.nights.ablations import (
    ALL,
    PARTS,
    ROUNDS_ONLY,
    VARIANTS,
    Run,
    Where,
    here,
    needs_teacher,
    recorded,
    run,
    settings_of,
)
from benchmarks.nights.paired import students_interval
from benchmarks.outputs.page import between, joined, markdown
from flows import environment

RESULTS, PAGE = Path("docs/what-helps.jsonl"), Path("docs/performance.md")
HOMES = SCHOOL / "what-helps"
NAME = "benchmarks.what_helps"
NONE = "none"
NOT_ALONE = (
    "- *rounds*: without them the teacher is asked nothing, and there are no answers of the student's own to learn "
    "from: this is what the three bring together."
)


@dataclass(frozen=True)
class Effect:
    """The effect of a part, for pairs of nights: the candidate's accuracy with the part, minus that without it.

    The nights of a pair share seed, machine, commit and packages. `without`: the mean accuracy without the part.
    """

    part: str
    differences: tuple[float, ...]
    without: float

    @property
    def mean(self) -> float:
        """The mean difference over the pairs."""
        return statistics.mean(self.differences)

    @property
    def interval(self) -> tuple[float, float] | None:
        """Student's 95 % interval of the mean difference, or None if there is only one pair."""
        return students_interval(self.differences) if len(self.differences) > 1 else None


def main() -> None:
    """Run the missing nights, then write the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seeds", type=int, nargs="+", default=[1, 2, 3])
    parser.add_argument("--variants", nargs="+", default=[*VARIANTS], choices=[*VARIANTS, NONE], metavar="VARIANT")
    options = parser.parse_args()
    environment.prepare()
    wanted = [(variant, seed) for seed in options.seeds for variant in options.variants if variant != NONE]
    study(missing(wanted, recorded(RESULTS), here()))
    runs = current(recorded(RESULTS))
    found = effects(runs)
    told = table(runs, found)
    PAGE.write_text(between(PAGE.read_text(), NAME, told))
    print(told)


def study(wanted: Sequence[tuple[str, int]]) -> None:
    """Run these nights (variant, seed) one after the other, and record each as soon as it is finished."""
    if not wanted:
        return
    make(HOMES)
    student, better = starter(), studied()
    with ExitStack() as teacher:
        if any(needs_teacher(variant) for variant, _ in wanted):
            teacher.enter_context(served(better, PORT, HOMES / "teacher.log"))
        for number, (variant, seed) in enumerate(wanted, 1):
            done = run(variant, seed, student, better, HOMES, RESULTS)
            print(f"{number} of {len(wanted)}: {variant}, seed {seed}: {done.candidate:.3f}", file=sys.stderr)


def missing(wanted: Sequence[tuple[str, int]], runs: Sequence[Run], here: Where) -> list[tuple[str, int]]:
    """Return the wanted nights that have no run with the current configuration on this machine at this commit."""
    known = {(one.variant, one.seed) for one in current(runs) if one.where == here}
    return [one for one in wanted if one not in known]


def current(runs: Sequence[Run]) -> list[Run]:
    """Return the newest run of each variant, seed and machine, if it had the variant's current configuration."""
    settings = {variant: settings_of(variant) for variant in VARIANTS}
    own = [one for one in runs if settings.get(one.variant) == one.settings]
    return list({(one.variant, one.seed, one.machine): one for one in own}.values())


def effects(runs: Sequence[Run]) -> list[Effect]:
    """Return the effects of the parts for which there are pairs of nights, the most helpful part first."""
    with_all = {(one.seed, one.where): one.candidate for one in runs if one.variant == ALL}
    found = []
    for part in PARTS:
        without = [one for one in runs if one.variant == f"without {part}" and (one.seed, one.where) in with_all]
        if without:
            differences = tuple(with_all[one.seed, one.where] - one.candidate for one in without)
            found.append(Effect(part, differences, statistics.mean(one.candidate for one in without)))
    return sorted(found, key=lambda effect: -effect.mean)


def table(runs: Sequence[Run], found: Sequence[Effect]) -> str:
    """Return Markdown: the effects, the nights with all parts and those with rounds alone, and the machines."""
    if not runs:
        return "Not measured yet."
    rows = (
        [
            effect.part,
            f"{effect.mean:+.3f}",
            "–" if effect.interval is None else "{:+.3f} to {:+.3f}".format(*effect.interval),
            joined(effect.differences, "+.3f"),
            f"{effect.without:.3f}",
        ]
        for effect in found
    )
    shown = markdown("part | it brought | 95 % interval | each pair of nights | the quiz without it", rows)
    notes = [NOT_ALONE for effect in found if effect.part == "rounds"]
    return "\n".join([shown, "", *notes, *_whole(runs), "", *_where(runs)])


def _whole(runs: Sequence[Run]) -> Iterator[str]:
    """Yield the accuracies of the nights with all parts and of those with rounds alone."""
    for variant in (ALL, ROUNDS_ONLY):
        own = [one for one in runs if one.variant == variant]
        if own:
            before, after = (statistics.mean(getattr(one, who) for one in own) for who in ("champion", "candidate"))
            each = joined(one.candidate for one in own)
            yield f"- *{variant}*: {before:.3f} before the night, {after:.3f} after it ({each})."
    serves = sum(one.reward_model_served for one in runs if one.variant == ALL)
    yield f"- The reward model served in {serves} of {sum(one.variant == ALL for one in runs)} nights with all parts."


def _where(runs: Sequence[Run]) -> Iterator[str]:
    for place in sorted({one.machine for one in runs}):
        own = [one for one in runs if one.machine == place]
        minutes = [one.minutes for one in own if one.minutes is not None]
        took = f"; {statistics.median(minutes):.1f} minutes a night, {max(minutes):.1f} the longest" if minutes else ""
        commits = ", ".join(sorted({one.commit for one in own}))
        yield f"- {len(own)} nights on {place}{took}. At {commits}. The quiz: {own[0].problems} problems."


if __name__ == "__main__":
    main()
