"""How good is a judge? It ranks groups of answers whose best answer is known.

    python -m benchmarks.judge [--base-url URL --model NAME | --checkpoint FOLDER] [--seeds 1 2 3 4 5] [--picks 60]

The judge sees the five answers of each pick in three orders, as in a night. The picks follow a known taste: `correct`
picks the one worked solution that is right (as a verifier would), and `short` picks the shortest. Prints how often the
judge ranks the picked answer first (a tie counts as a fraction; chance is 0.2), the share of the other answers that it
ranks below the picked one, how often another order changes its best answer, and whether a night would use the judge.
A pick that it does not judge counts as a guess. The default judge is the starter.
"""

import argparse
import statistics
import tempfile
import time
from contextlib import ExitStack
from pathlib import Path
from typing import Any, get_args

from benchmarks.inputs.starter import starter
from benchmarks.inputs.tastes import ANSWERS, Taste, picks
from benchmarks.local_teacher import NAME, served
from benchmarks.outputs.page import markdown
from conf.sections.lessons import EndpointConfig
from flows.web.address import free_port
from models.lessons.ranking import exact_interval, hit
from tasks.reward_model.judge import Group, judge_groups

COLUMNS = "answers | ranked first | pairs in order | unjudged | another best in another order | would serve"
TASTES: tuple[Taste, ...] = ("correct", "short")
MINUTES = 30  # for the picks of one seed


def main() -> None:
    """Have the judge rank the picks of each taste, and print a table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--base-url")
    parser.add_argument("--model", default=NAME)
    parser.add_argument("--checkpoint", type=Path)
    parser.add_argument("--tastes", nargs="+", choices=get_args(Taste), default=TASTES)
    parser.add_argument("--seeds", type=int, nargs="+", default=[1, 2, 3, 4, 5])
    parser.add_argument("--picks", type=int, default=60)
    parser.add_argument("--max-tokens", type=int, default=96, help="of a reply, at most")
    options = parser.parse_args()
    with ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory()))
        model: Path = options.checkpoint or starter()
        url = options.base_url or stack.enter_context(served(model.resolve(), free_port(), folder / "vllm.log"))
        endpoint = EndpointConfig(
            base_url=url,
            model=options.model,
            max_tokens=options.max_tokens,
            budget_tokens=10_000_000,
            budget_minutes=MINUTES,
        )
        rows = []
        for taste in options.tastes:
            found = [measure(taste, seed, options.picks, endpoint, folder / "replies") for seed in options.seeds]
            rows.append(row(taste, found))
    print(markdown(COLUMNS, rows))


def measure(taste: Taste, seed: int, count: int, endpoint: EndpointConfig, cache: Path) -> dict[str, Any]:
    """Have a judge rank a seed's picks, and return how well it does, as figures by name."""
    drawn = picks(taste, count, f"judge {seed}")
    groups = [Group(pick.messages[0]["content"], pick.responses) for pick in drawn]
    judged, summary = judge_groups(groups, endpoint, cache, time.time() + 60 * MINUTES, f"{taste}-{seed}")
    first, pairs = [], []
    for pick, scores in zip(drawn, judged, strict=True):
        given = scores or [0.0] * ANSWERS
        first.append(hit(given, pick.chosen))
        others = [score for answer, score in enumerate(given) if answer != pick.chosen]
        pairs += [(given[pick.chosen] > other) + 0.5 * (given[pick.chosen] == other) for other in others]
    return {
        "first": statistics.mean(first),
        "pairs": statistics.mean(pairs),
        "unjudged": 1 - summary["judged"] / count,
        "flips": summary["order_flips"],
        "serves": exact_interval(sum(first), count).low > 1 / ANSWERS,
    }


def row(taste: Taste, found: list[dict[str, Any]]) -> list[str]:
    """Return a taste's row of the table: the means over the seeds."""
    means = [statistics.mean(one[name] for one in found) for name in ("first", "pairs", "unjudged")]
    flips = [one["flips"] for one in found if one["flips"] is not None]
    shares = [*(f"{mean:.3f}" for mean in means), f"{statistics.mean(flips):.3f}" if flips else "–"]
    return [taste, *shares, f"{sum(one['serves'] for one in found)} of {len(found)}"]


if __name__ == "__main__":
    main()
