"""A second night that learns the same day's solutions once more: is the champion worse after it than before?

    python -m benchmarks.second_night [--seeds 1 2 3]

For each seed: a starter night of a few rounds; then, from copies of its home, two nights that only learn 192 worked
solutions of the same day, now from the journal. One learns as the first night did (*unguarded*: the same rate, and
whatever comes of it), one as shipped. Finished nights are not run again. Prints the table of docs/performance.md.
"""

import argparse
import json
import shutil
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from benchmarks.inputs.school import SCHOOL
from benchmarks.nights.timed import DATE
from benchmarks.nights.whole import whole_night
from benchmarks.outputs.page import markdown
from conf.load import STARTER, load_night
from rewards.data.synthetic_journal import generated_lines
from tasks.evaluation.statistics import mcnemar

HOMES = SCHOOL / "second-night"
SECOND = "2026-01-02"
SMALL = (
    "budget_minutes=null",
    "start_from=champion",
    "exam.guards=[]",
    "grpo.quiz_every_rounds=0",
    "day={generated_traces: 192}",
)
UNGUARDED = ("lessons.quiz_problems=0", f"distill.trained_student_rate={load_night(STARTER).distill.learning_rate}")
VARIANTS: dict[str, Sequence[str]] = {"unguarded": UNGUARDED, "shipped": ()}


def main() -> None:
    """Run the missing nights, then print the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seeds", type=int, nargs="+", default=[1, 2, 3])
    parser.add_argument("--rounds", type=int, default=8, help="of the first night")
    options = parser.parse_args()
    rows = []
    for seed in options.seeds:
        first = HOMES / f"seed-{seed}-rounds-{options.rounds}" / "first"
        whole_night(first, *SMALL, f"seed={seed}", f"grpo.rounds={options.rounds}")
        for variant, settings in VARIANTS.items():
            home, draft = first.with_name(variant), first.with_name("draft")
            if not home.exists():
                shutil.copytree(first, draft)
                write_journal(draft / "journal" / f"{DATE}.jsonl", seed)
                draft.rename(home)
            second = whole_night(home, *SMALL, f"seed={seed}", "stages=[distill]", *settings, date=SECOND)
            rows.append(row(seed, variant, second["folder"]))
    print(markdown("seed | after the first night | the second | after it | worse? (p) | the lesson", rows))


def write_journal(file: Path, seed: int) -> None:
    """Write the day's worked solutions as if you had brought them yourself."""
    file.parent.mkdir(exist_ok=True)
    lines = generated_lines("traces", str(seed), 192, ["1", "2"], f"{DATE}T20:00:00")
    own = [{key: value for key, value in line.items() if key != "generated"} | {"teacher": "me"} for line in lines]
    file.write_text("".join(f"{json.dumps(line)}\n" for line in own))


def row(seed: int, variant: str, folder: Path) -> list[Any]:
    """Return a second night as a row of the table."""
    decision = json.loads((folder / "decide" / "decision.json").read_text())
    compared = decision["comparisons"]["candidate"][decision["target"]]
    before, after = (compared[who]["accuracy"] for who in ("before", "after"))
    verdict, counts = folder / "distill_check" / "verdict" / "outcome.json", folder / "distill" / "counts.json"
    became = json.loads(verdict.read_text())["outcome"].replace("_", " ") if verdict.exists() else "not checked"
    learned = json.loads(counts.read_text())["kept"]
    p_value = mcnemar(compared["lost"], compared["gained"])
    return [seed, f"{before:.3f}", variant, f"{after:.3f}", f"{p_value:.2g}", f"{became} ({learned} learned)"]


if __name__ == "__main__":
    main()
