"""A simulated teacher in the real classroom: does the model learn the teacher's taste, how fast, and at what cost?

    python -m benchmarks.teach [--json] [--arms picks literal …] [--tastes short …] [--seeds 1 2 3] [--picks 50]

Starts `nightschool teach` on a home whose champion is the starter student, and teaches through the endpoints that the
page uses. The teacher picks by a taste among five answers to everyday questions; with `--noise`, that share of its
picks is random. Before, during and after the day, the taste rates answers to questions that are never taught. The day
copy writes four in five of these, as for any question. In the arm *night only*, nothing is learned by day; a night with
no rounds follows, and its model writes the last answers. Every run is a line in school/benchmarks/teach.jsonl and is
not repeated. Prints a table, the gates, latencies and memory; --json prints one object.
"""

import argparse
import itertools
import json
import os
import random
import re
import signal
import statistics
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Any

import httpx

from benchmarks.inputs.champion import home_with_champion
from benchmarks.machine.child import json_of
from benchmarks.outputs.page import markdown
from benchmarks.outputs.records import run_once
from conf.load import STARTER, load_night
from conf.storage.home import Home
from flows.web.address import free_port
from tasks.workers.worker import die_with_parent

RESULTS = Path("school/benchmarks/teach.jsonl")
HOMES = Path("school/benchmarks/teach")
TOKENS = 48  # of an answer, at most
UNSEEN = 40  # questions at each look, with five answers each

TOPICS = (
    "owls|bees|the moon|rain|bread|trains|the sea|winter|a good friend|music|coffee|mountains|a library|dogs|apples|"
    "the stars|football|a garden|bridges|clouds|horses|a birthday|old houses|rivers|tea|the city|cats|snow|books|"
    "a long walk|paintings|birds|the desert|cheese|ships|spring|a teacher|the night|trees|a market"
)
# These ask for answers short enough to end: one that is cut off has no length to judge.
FORMS = (
    "Write one sentence about {}.",
    "Say something nice about {} in one short sentence.",
    "In one sentence, why do people like {}?",
    "Give one reason to think about {}, in a few words.",
)
QUESTIONS = [form.format(topic) for form in FORMS for topic in TOPICS.split("|")]


def sentences(text: str) -> int:
    """Return the number of sentences in an answer. A sentence that is cut off counts as two."""
    whole = re.findall(r"[.!?](?=\s|$)", text.strip())
    return len(whole) + 2 * (not re.search(r"[.!?]$", text.strip()))


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
TASTES: Mapping[str, Callable[[str], float]] = {  # the higher, the better
    "short": lambda text: -len(text),
    "asks back": lambda text: float(text.rstrip().endswith("?")) + 0.1 * float("?" in text),
    "no digits": lambda text: -float(sum(map(str.isdigit, text))),
    "one sentence": lambda text: -float(sentences(text)),
    "none": lambda text: 0.0,
}
GOOD: Mapping[str, Callable[[str], bool]] = {  # the answers that the taste rate counts
    "short": lambda text: len(text) <= 70,
    "asks back": lambda text: text.rstrip().endswith("?"),
    "no digits": lambda text: not any(map(str.isdigit, text)),
    "one sentence": lambda text: sentences(text) == 1,
    "none": lambda text: len(text) <= 70,
}
GOALS = {"first": (0.6, 1.2), "five": (2.5, 5.0), "saved": (0.03, 0.1), "learned": (1.0, 2.0), "undone": (0.3, 1.0)}
MEMORY = 3.5  # GB
COLUMNS = "taste | arm | seed | taste rate, at picks | guessed | blind wins (chance) | KL of the day | distinct of 5"


class Classroom:
    """A running `nightschool teach`, and the seconds that its requests took."""

    def __init__(self, home: Path, settings: Sequence[str]) -> None:
        command = [sys.executable, "-m", "flows", "teach", f"--config={STARTER}", "--json", f"--port={free_port()}"]
        # hold out nothing that is taught: the benchmark itself keeps the questions of a look apart
        plain = ("learned_reward.owner_share=0", f"teach.max_answer_tokens={TOKENS}", *settings)
        parent = os.getpid()
        self.process = subprocess.Popen(
            [*command, *(f"--set={setting}" for setting in plain)],
            env=os.environ | {"NIGHTSCHOOL_HOME": str(home.resolve())},
            stdout=subprocess.PIPE,
            preexec_fn=lambda: die_with_parent(parent, signal.SIGTERM),
        )
        assert self.process.stdout is not None
        address = json.loads(self.process.stdout.readline())
        here = f"http://127.0.0.1:{address['port']}"
        self.client = httpx.Client(base_url=here, headers={"Origin": here}, timeout=300)
        self.client.post("/api/session", json={"token": address["token"]}).raise_for_status()
        self.seconds: dict[str, list[float]] = {name: [] for name in GOALS}

    def ask(self, question: str, *, timed: bool = False) -> list[dict[str, Any]]:
        """Ask a question, and return the answers that are not blank. If `timed`, record the seconds."""
        began, first = time.perf_counter(), 0.0
        answers: list[dict[str, Any]] = []
        with self.client.stream("POST", "/api/ask", json={"text": question}) as response:
            for line in response.iter_lines():
                if line.startswith("data: "):
                    first = first or time.perf_counter() - began
                    answers = json.loads(line[6:]).get("answers", answers)
        if timed:
            self.seconds["first"].append(first)
            self.seconds["five"].append(time.perf_counter() - began)
        return [answer for answer in answers if answer["text"].strip()]

    def teach(self, kind: str, answer: Mapping[str, Any]) -> dict[str, Any]:
        """Teach one lesson about an answer, and return the classroom's report of it."""
        lesson = self.client.post("/api/lesson", json={"kind": kind, "answer": answer["id"]}).raise_for_status().json()
        self.seconds["saved"].append(lesson["saved_seconds"])
        if lesson["seconds"] is not None:
            self.seconds["learned"].append(lesson["seconds"])
        return lesson

    def undo(self, lesson: str) -> None:
        """Undo a lesson, and record the seconds that this took."""
        undone = self.client.request("DELETE", f"/api/lesson/{lesson}", json={}).raise_for_status().json()
        self.seconds["undone"].append(undone["seconds"])

    def memory(self) -> float:
        """Return the memory of the classroom's processes in GB (proportional set size: shared pages count once)."""
        import psutil

        command = psutil.Process(self.process.pid)
        return sum(one.memory_full_info().pss for one in [command, *command.children(recursive=True)]) / 1e9


@contextmanager
def classroom(home: Path, settings: Sequence[str]) -> Iterator[Classroom]:
    """Run a classroom on a home while the block runs."""
    running = Classroom(home, settings)
    try:
        yield running
    finally:
        running.process.terminate()
        running.process.wait()


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
    parser.add_argument("--json", action="store_true")
    options = parser.parse_args()
    runs = []
    same = {name: getattr(options, name) for name in ("picks", "noise", "settings", "looks", "thinking")}
    for taste, arm, seed in itertools.product(options.tastes, options.arms, options.seeds):
        what = {"taste": taste, "arm": arm, "seed": seed} | same
        runs.append(run_once(RESULTS, what, partial(day, what)))
    print(json.dumps({"runs": runs, "gates": gates(runs)}) if options.json else table(runs))


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
    looks = range(0, what["picks"] + 1, what["picks"] // max(what["looks"] - 1, 1)) if what["looks"] else range(0)
    if by_night:
        looks = looks[:1]
    with classroom(home, [*ARMS[what["arm"]], *what["settings"]]) as room:
        if by_night:
            room.client.post("/api/live", json={"on": False}).raise_for_status()  # nothing is learned by day
        for number in range(what["picks"] + 1):
            if number in looks:
                look(room, number)
            if number < what["picks"]:
                pick(room, taught[number % len(taught)], what, random_)
        state = room.client.get("/api/state").json()
        gigabytes = room.memory()
        time.sleep(what["thinking"])
        room.undo(state["lessons"][0]["id"])
    if by_night:
        night = sleep(home, [*what["settings"], f"seed={seed}"])
        with classroom(home, what["settings"]) as morning:
            look(morning, what["picks"])
    run = dict(what) | {
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
    print(json.dumps(run), file=sys.stderr)
    return run


def sleep(home: Path, settings: Sequence[str]) -> dict[str, Any]:
    """Run the night after a day, and promote its candidate in any case. Return decision, reasons and digests."""
    from flows.web.health import open_registry

    options = ["--config", str(STARTER), "--json", *(f"--set={setting}" for setting in (*NIGHT, *settings))]
    summary = json_of("flows", "night", *options, environment={"NIGHTSCHOOL_HOME": str(home.resolve())})
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


def gates(every: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """Return the gates, which were fixed before the first run, each with what the runs measured (None: no such run)."""
    timed = [run for run in every if run["arm"] != "literal"]
    kept = [run for run in timed if run["rates"]]

    def gains(taste: str, arm: str) -> dict[int, float]:
        """Return the gain in taste rate from the first look to the last, by seed."""
        runs = [run for run in every if run["rates"] and (run["taste"], run["arm"]) == (taste, arm)]
        return {run["seed"]: run["rates"][-1] - run["rates"][0] for run in runs}

    short, none = ([*gains(taste, "picks").values()] for taste in ("short", "none"))
    whole, traces = (gains("one sentence", arm) for arm in ("praise", "praise with traces"))
    better = [gain - whole[seed] for seed, gain in traces.items() if seed in whole]
    promoted = [run["night"]["decision"] == "promoted" for run in kept if run["taste"] == "none" and run.get("night")]
    seconds = {
        name: [max(run["seconds"][name][at] for run in timed if name in run["seconds"]) for at in (0, 1)]
        for name in GOALS
        if any(name in run["seconds"] for run in timed)
    }
    distinct = [run["distinct"][-1] / run["distinct"][0] for run in kept]
    return {
        "short: at least +0.20": {"gains": short, "passed": len(short) >= 3 and min(short) >= 0.2},
        "none: about 0": {"gains": none, "passed": bool(none) and abs(statistics.mean(none)) < 0.1},
        "none: no night promotes": {"nights": len(promoted), "promoted": sum(promoted)},
        "one sentence: traces beat whole answers": {"by": better, "passed": len(better) >= 3 and min(better) > 0},
        "day KL at most 0.1": {"largest": max((run["day_kl"] for run in kept), default=None)},
        "distinct answers at least 80 % of the start": {"least": min(distinct, default=None)},
        "seconds, median and 95 %, the slowest run": {
            name: {"seen": seen, "goal": GOALS[name]} for name, seen in seconds.items()
        },
        "memory": {"largest": max((run["gigabytes"] for run in every), default=None), "goal": MEMORY},
    }


def table(runs: Sequence[Mapping[str, Any]]) -> str:
    """Return the runs and the gates as Markdown."""
    rows = []
    for run in runs:
        rates = " → ".join(f"{rate:.2f} ({at})" for rate, at in zip(run["rates"], run["at"], strict=True))
        blind = f"{run['blind']['day']:.0f} of {run['blind']['picks']} ({run['blind']['chance']:.0f})"
        distinct = f"{run['distinct'][0]:.1f} → {run['distinct'][-1]:.1f}" if run["distinct"] else ""
        what = [run["taste"], run["arm"], run["seed"]]
        rows.append([*what, rates, run["guessed"], blind, f"{run['day_kl']:.4f}", distinct])
    return f"{markdown(COLUMNS, rows)}\n\n{json.dumps(gates(runs), indent=1)}"


if __name__ == "__main__":
    main()
