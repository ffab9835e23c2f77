"""A simulated teacher in the real classroom: does the model learn the teacher's taste, how fast, and at what cost?

    python -m benchmarks.teach [--arms picks literal …] [--tastes short …] [--seeds 1 2 3] [--picks 50]

Starts `nightschool teach` on a home whose champion is the starter student, and teaches through the endpoints that the
page uses. The teacher picks by a taste among five answers to everyday questions; with `--noise`, that share of its
picks is random. Before, during and after the day, the taste rates answers to questions that are never taught. The day
copy writes four in five of these, as for any question. In the arm *night only*, nothing is learned by day; a night with
no rounds follows, and its model writes the last answers. Every run is a line in school/benchmarks/teach.jsonl and is
not repeated. Prints a table, with latencies (median and 95th percentile) and memory.
"""

import argparse
import itertools
import random
import statistics
import time
from collections.abc import Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any

from benchmarks.inputs.champion import home_with_champion
from benchmarks.inputs.owners import GOOD, QUESTIONS, TASTES
from benchmarks.machine.child import nightschool
from benchmarks.machine.classroom import Classroom, classroom
from benchmarks.outputs.page import markdown
from benchmarks.outputs.records import run_once
from conf.load import STARTER, load_night
from conf.storage.home import Home

RESULTS = Path("school/benchmarks/teach.jsonl")
HOMES = Path("school/benchmarks/teach")
UNSEEN = 40  # questions at each look, with five answers each

NIGHT_ONLY = "night only"
ARMS: Mapping[str, tuple[str, ...]] = {
    "picks": (),
    "literal": ("teach.method=literal",),
    "praise": (),  # the best answer is praised and the worst is blamed, each as a whole
    "praise with traces": ("teach.traces=true",),
    NIGHT_ONLY: (),
}
# A night that learns nothing but picks, both directly and through a reward model.
NIGHT = (
    *("stages=[lessons]", "preference_learning=both", "day.generated_traces=0", "budget_minutes=null"),
    *("exam.target.problems=200", "exam.guards=[{benchmark: instructions, problems: 100, margin: 0.3}]"),
)
TIMED = {"first": "first answer", "five": "five answers", "saved": "saving", "learned": "lesson", "undone": "undoing"}
COLUMNS = (
    *("taste", "arm", "seed", "taste rate, at picks", "guessed", "blind wins (chance)", "KL of the day"),
    *("distinct of 5", *(f"{name}, s" for name in TIMED.values()), "GB"),
)


def main() -> None:
    """Do the missing runs, and print the results of all."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--arms", nargs="+", default=[*ARMS], choices=[*ARMS], metavar="ARM")
    parser.add_argument("--tastes", nargs="+", default=["short", "none"], choices=[*TASTES], metavar="TASTE")
    parser.add_argument("--seeds", type=int, nargs="+", default=[1, 2, 3])
    parser.add_argument("--picks", type=int, default=50)
    parser.add_argument("--looks", type=int, default=3, help="how often the taste is rated; 0: never")
    parser.add_argument("--thinking", type=float, default=2.0, help="seconds before each click and question")
    parser.add_argument("--noise", type=float, default=0.0, help="share of the picks that are random")
    parser.add_argument("--set", nargs="+", default=[], dest="settings", help="settings of the classroom, for all arms")
    options = parser.parse_args()
    runs = []
    same = {name: getattr(options, name) for name in ("picks", "noise", "settings", "looks", "thinking")}
    for taste, arm, seed in itertools.product(options.tastes, options.arms, options.seeds):
        what = {"taste": taste, "arm": arm, "seed": seed} | same
        runs.append(run_once(RESULTS, what, partial(day, what)))
    print(table(runs))


def day(what: Mapping[str, Any]) -> dict[str, Any]:
    """Teach for a day. Returns the run."""
    taste, seed = what["taste"], what["seed"]
    random_ = random.Random(f"{taste} {seed}")
    questions = random_.sample(QUESTIONS, len(QUESTIONS))
    unseen, taught = questions[:UNSEEN], questions[UNSEEN:]
    home = home_with_champion(HOMES / f"{taste}-{what['arm']}-{seed}".replace(" ", "-"))
    rates, distinct, at, night = [], [], [], None

    def look(room: Classroom, number: int) -> None:
        shown = [answer for question in unseen for answer in room.ask(question)]
        rates.append([GOOD[taste](answer["text"]) for answer in shown for _ in range(answer["count"])])
        distinct.append(len(shown) / UNSEEN)
        at.append(number)

    by_night = what["arm"] == NIGHT_ONLY
    looks = looked_at(what["picks"], what["looks"])
    if by_night:
        looks = looks[:1]
    with classroom(home, [*ARMS[what["arm"]], *what["settings"]]) as room:
        if by_night:
            room.live(False)  # nothing is learned by day
        for number in range(what["picks"] + 1):
            if number in looks:
                look(room, number)
            if number < what["picks"]:
                pick(room, taught[number % len(taught)], what, random_)
        state = room.state()
        gigabytes = room.memory()
        time.sleep(what["thinking"])
        room.undo(state["lessons"][0]["id"])
    if by_night:
        night = sleep(home, [*what["settings"], f"seed={seed}"])
        with classroom(home, what["settings"]) as morning:
            look(morning, what["picks"])
    return {
        "at": at,
        "rates": [statistics.mean(rate) for rate in rates],
        "answers": [len(rate) for rate in rates],
        "distinct": distinct,
        "guessed": sum(lesson["guessed"] or False for lesson in state["lessons"]),
        "blind": state["blind"],
        "learned": sum(lesson["learned"] for lesson in state["lessons"]),
        "day_kl": state["day_kl"],
        "seconds": {name: percentiles(found) for name, found in room.seconds.items() if found},
        "gigabytes": gigabytes,
        "night": night,
    }


def looked_at(picks: int, looks: int) -> range:
    """Return the numbers of picks after which the taste is rated, evenly spaced from none on."""
    return range(0, picks + 1, max(picks // max(looks - 1, 1), 1)) if looks else range(0)


def sleep(home: Path, settings: Sequence[str]) -> dict[str, Any]:
    """Run the night after a day, and promote its candidate in any case. Return decision, reasons and digests."""
    from flows.web.health import open_registry

    every = (f"--set={setting}" for setting in (*NIGHT, *settings))
    summary = nightschool(home, "night", "--config", str(STARTER), *every)
    registry = open_registry(Home(home.resolve()), load_night(STARTER))
    assert registry is not None
    (version,) = [known for known in registry.versions() if known.digest == summary["digests"]["candidate"]]
    registry.promote(version.version)
    return {name: summary[name] for name in ("decision", "reasons", "digests")}


def pick(room: Classroom, question: str, what: Mapping[str, Any], random_: random.Random) -> None:
    """Ask a question, then teach by the taste: pick the best answer, or praise the best and blame the worst."""
    time.sleep(what["thinking"])
    answers = room.ask(question, timed=True)
    if len(answers) < 2:
        return
    time.sleep(what["thinking"])
    noisy = random_.random() < what["noise"]
    ranked = sorted(answers, key=lambda answer: random_.random() if noisy else TASTES[what["taste"]](answer["text"]))
    if what["taste"] == "none":
        random_.shuffle(ranked)
    if what["arm"] in ("picks", "literal", NIGHT_ONLY):
        room.teach("pick", ranked[-1])
    else:
        room.teach("praise", ranked[-1])
        room.teach("blame", ranked[0])


def percentiles(seconds: Sequence[float]) -> tuple[float, float]:
    """Return the median and the 95th percentile."""
    ordered = sorted(seconds)
    return statistics.median(ordered), ordered[min(len(ordered) - 1, round(0.95 * len(ordered)))]


def table(runs: Sequence[Mapping[str, Any]]) -> str:
    """Return the runs as a Markdown table."""
    rows = []
    for run in runs:
        rates = " → ".join(f"{rate:.2f} ({at})" for rate, at in zip(run["rates"], run["at"], strict=True))
        blind = f"{run['blind']['day']:.0f} of {run['blind']['picks']} ({run['blind']['chance']:.0f})"
        distinct = f"{run['distinct'][0]:.1f} → {run['distinct'][-1]:.1f}" if run["distinct"] else ""
        taken = [run["seconds"].get(name) for name in TIMED]
        seconds = ["{:.2f} ({:.2f})".format(*found) if found else "" for found in taken]
        what = [run["taste"], run["arm"], run["seed"], rates, run["guessed"], blind, f"{run['day_kl']:.4f}"]
        rows.append([*what, distinct, *seconds, f"{run['gigabytes']:.1f}"])
    return markdown(" | ".join(COLUMNS), rows)


if __name__ == "__main__":
    main()
