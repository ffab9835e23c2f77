"""Does a small student learn more from problems that it writes itself than from drawn ones?

    python -m benchmarks.self_play [--size 15M] [--domains sums facts] [--arms drawn …] [--seeds 1 2 3 4 5]

A student trained from scratch takes one lesson, which also teaches it to write problems like six others. Then each
night has 20 rounds of problems of one domain: sums of two steps, or comparisons of 100 invented people, which a table
answers. In the arm `drawn`, the problems are drawn; in `own`, the student writes them and learns to answer them; in
`both`, it also learns to write them. Missing problems are drawn. The exam has problems that no lesson and no round
asks. Each night is a line in docs/self-play.jsonl and is not repeated. Writes the table in docs/self-play.md.
"""

import itertools
import random
import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from statistics import fmean

import pandas as pd

from benchmarks.floor import CONFIG, RATES
from benchmarks.inputs.options import options
from benchmarks.inputs.pretrained import pretrained
from benchmarks.inputs.school import SCHOOL
from benchmarks.nights.whole import outcome, whole_night
from benchmarks.outputs.page import fill, joined, markdown
from benchmarks.outputs.power import mean_difference
from benchmarks.outputs.records import Run, by, paired, sweep
from conf.schema import NEW_SIZES
from rewards.arithmetic import Arithmetic, as_problem, worked_solution
from rewards.data.arithmetic_exercises import NAMES, Exercise, written_exercise
from rewards.verifier import Attempt, Benchmark, Problem, Score, Split
from tasks.rollouts.self_play import EXAMPLES

RESULTS, PAGE, NAME = Path("docs/self-play.jsonl"), Path("docs/self-play.md"), "benchmarks.self_play"
HOMES = SCHOOL / "self-play"
ROUNDS, PROBLEMS = 20, 48  # of a night; of a round
SOLUTIONS, REQUESTS, STEPS = 6000, 2000, 500  # of the lesson
EVERY = ("budget_minutes=null", "lessons.quiz_problems=0", "exam.after_lessons=true", "day.generated_traces=0")
ARMS: Mapping[str, tuple[str, ...]] = {
    "drawn": (f"stages=[{{grpo: {ROUNDS}}}]",),
    "own": (f"stages=[{{self_play: {ROUNDS}}}]", "self_play.train=answerer"),
    "both": (f"stages=[{{self_play: {ROUNDS}}}]", "self_play.train=both"),
}
TRAITS = ("older", "taller", "richer")
PEOPLE, EXAM = 100, 300
FATES = ("admitted", "unreadable", "repeated", "surplus")  # of a text
QUESTION = re.compile(r"Who is (older|taller|richer), (\w+ \w+) or (\w+ \w+)\?")


class Sums(Arithmetic):
    """Sums such as 17 * 4 + 9 and 17 + 4 - 9, with numbers up to 30."""

    def __init__(self, source: str | None = None) -> None:
        super().__init__()

    def problems(self, split: Split) -> list[Problem]:
        """Return the sums of the exam, or 2,000 others."""
        drawn = itertools.islice(sums(split, split), EXAM if split == "test" else 2000)
        return [*{one.expression: as_problem(one) for one in drawn}.values()]

    def draw(self, seed: str, count: int) -> list[Problem]:
        """Return training sums, always the same for a given seed."""
        return [as_problem(one) for one in itertools.islice(sums(seed, "train"), count)]

    def solutions(self) -> list[tuple[Problem, str]]:
        """Return worked solutions of training sums."""
        drawn = itertools.islice(sums("lesson", "train"), SOLUTIONS)
        return [(as_problem(one), worked_solution(one)) for one in drawn]


def sums(seed: str, split: Split) -> Iterator[Exercise]:
    """Yield random sums of a split endlessly."""
    chance = random.Random(seed)
    while True:
        first, second, third = (chance.randint(1, 30) for _ in range(3))
        exercise = written_exercise(f"{first} {chance.choice(('* {} +', '+ {} -')).format(second)} {third}")
        if exercise is not None and exercise.split == split:
            yield exercise


class Facts(Benchmark):
    """Questions such as "Who is older, Emma Jack or Tom Mia?", which a table of 100 invented people answers."""

    name = "facts"
    instruction = "Say what you know of both, then the answer as #### <name> on a last line."
    bounded = True

    def __init__(self, source: str | None = None) -> None:
        chance = random.Random("facts")
        names = [" ".join(pair) for pair in chance.sample([*itertools.permutations(NAMES, 2)], PEOPLE)]
        drawn = {trait: chance.sample(range(100, 1000), PEOPLE) for trait in TRAITS}
        self.people = {name: {trait: drawn[trait][at] for trait in TRAITS} for at, name in enumerate(names)}
        pairs = [(trait, pair) for trait in TRAITS for pair in itertools.combinations(names, 2)]
        self.exam = frozenset(chance.sample(pairs, EXAM))
        self.others = [pair for pair in pairs if pair not in self.exam]

    def problems(self, split: Split) -> list[Problem]:
        """Return a question about each of the exam's pairs, or both questions about each other pair."""
        if split == "test":
            return [self._problem(trait, *pair) for trait, pair in sorted(self.exam)]
        return [self._problem(trait, *names) for trait, pair in self.others for names in itertools.permutations(pair)]

    def solutions(self) -> list[tuple[Problem, str]]:
        """Return the training questions with answers that give both numbers first."""
        return [(problem, self._solution(problem)) for problem in self.problems("train")]

    def kind(self, problem: Problem) -> str:
        """Return what is compared."""
        return problem.question.partition(",")[0]

    def score(self, attempts: Sequence[Attempt]) -> list[Score]:
        """Give 1 for the right name after the last `####`."""
        found = [(one.problem.truth, *one.completion.rpartition("####")[1:]) for one in attempts]
        given = ((marker, answer.strip() == truth) for truth, marker, answer in found)
        return [Score.of("no_answer" if not marker else "correct" if right else "wrong") for marker, right in given]

    def question_prompt(self, examples: Sequence[Problem]) -> str:
        """Return a prompt that shows questions and asks for another."""
        return "\n".join([*(problem.question for problem in examples), "Write one new question like these."])

    def proposed(self, text: str) -> Problem | None:
        """Return the question that a text asks, if the table answers it and it isn't the exam's."""
        found = QUESTION.fullmatch(text.strip())
        if found is None or found[2] == found[3] or not {found[2], found[3]} <= self.people.keys():
            return None
        names = list(self.people)
        first, second = sorted(found.groups()[1:], key=names.index)
        return None if (found[1], (first, second)) in self.exam else self._problem(*found.groups())

    def _problem(self, trait: str, first: str, second: str) -> Problem:
        question = f"Who is {trait}, {first} or {second}?"
        truth = max(first, second, key=lambda name: self.people[name][trait])
        return Problem(f"facts/{question}", self.name, question, truth)

    def _solution(self, problem: Problem) -> str:
        _, trait, *names, _ = re.split(QUESTION, problem.question)
        known = [f"{name}: {self.people[name][trait]}" for name in names]
        return "\n".join([*known, f"#### {problem.truth}"])


class Requests(Benchmark):
    """Requests for a problem like six others, from which a student learns to write them. `source`: a domain."""

    name, bounded = "requests", True

    def __init__(self, source: str) -> None:
        self.domain = DOMAINS[source]()

    def problems(self, split: Split) -> list[Problem]:
        """Return the requests; none for the exam."""
        return [request for request, _ in self.solutions()] if split == "train" else []

    def solutions(self) -> list[tuple[Problem, str]]:
        """Return requests, each with a problem that it doesn't show."""
        chance, found = random.Random("requests"), []
        known = list(dict.fromkeys(self.domain.draw("requests", 4 * REQUESTS)))
        for number in range(REQUESTS):
            *shown, other = chance.sample(known, EXAMPLES + 1)
            request = Problem(f"requests/{number}", self.name, self.domain.question_prompt(shown), "")
            found.append((request, self.domain.question_prompt([other]).partition("\n")[0]))  # as it would be shown
        return found

    def score(self, attempts: Sequence[Attempt]) -> list[Score]:
        """Give 1 for a problem that can be read."""
        read = [self.domain.proposed(one.completion) is not None for one in attempts]
        return [Score.of("correct" if usable else "wrong") for usable in read]


DOMAINS: Mapping[str, type[Benchmark]] = {"sums": Sums, "facts": Facts}


def main() -> None:
    """Do the missing nights, and write the table of all."""
    given = options(
        __doc__, {"--size": "15M", "--domains": DOMAINS, "--arms": ARMS, "--seeds": [1, 2, 3, 4, 5]}, size=NEW_SIZES
    )
    axes = {"size": [given.size], "domain": given.domains, "arm": given.arms, "seed": given.seeds}
    if runs := sweep(RESULTS, night, **axes):
        fill(PAGE, NAME, table(runs))


def taught(size: str, domain: str) -> Path:
    """Return the student after its lesson. The first call pretrains and teaches it."""
    own, requests = f"{NAME}:{DOMAINS[domain].__name__}", f"{{name: '{NAME}:Requests', source: {domain}}}"
    lesson = HOMES / f"{size}-{domain}-lesson"
    settings = [
        f"benchmarks=[{{name: '{own}', weight: 3}}, {requests}]",
        *("stages=[distill]", f"student.source={pretrained(size)}", f"distill.steps={STEPS}"),
        *(f"distill.reference_solutions={SOLUTIONS + REQUESTS}", "distill.batch_size=16"),
        f"distill.learning_rate={RATES[size][0]}",
    ]
    found = whole_night(lesson, *settings, *EVERY, f"exam.target={{benchmark: '{own}'}}", config=CONFIG)
    return (lesson / "checkpoints" / found["digests"]["candidate"]).resolve()


def night(size: str, domain: str, arm: str, seed: int) -> Run:
    """Run a night of rounds, and return its record."""
    own = f"{NAME}:{DOMAINS[domain].__name__}"
    settings = [f"benchmarks=[{{name: '{own}'}}]", f"student.source={taught(size, domain)}", f"seed={seed}"]
    settings += [
        *ARMS[arm],
        *(f"grpo.prompts_per_round={PROBLEMS}", f"self_play.proposals={4 * PROBLEMS}"),
        f"optimizer.learning_rate={RATES[size][1]}",
        f"exam.target={{benchmark: '{own}'}}",
    ]
    found = whole_night(HOMES / f"{size}-{domain}-{arm}-{seed}", *settings, *EVERY, config=CONFIG)
    files = [*found["folder"].glob("round-*/select_prompts/proposals.parquet")]
    fates = [verdict for file in files for verdict in pd.read_parquet(file, columns=["verdict"])["verdict"]]
    return {**outcome(found), "rounds": found["rounds"], "texts": dict(Counter(fates))}


def table(runs: Sequence[Run]) -> str:
    """Return a Markdown table: each arm's gain, its difference from `drawn`, and the shares of its texts by verdict.

    `own`: the share of the rounds' problems that the student wrote.
    """
    rows = []
    kinds = by(runs, "size", "domain", "arm")
    for (size, domain, arm), same in kinds.items():
        gains = [_gain(run) for run in same]
        beside = paired(same, kinds.get((size, domain, "drawn"), []), _gain) if arm != "drawn" else []
        texts = sum((Counter(run["texts"]) for run in same), Counter[str]())
        fates = [f"{texts[fate] / texts.total():.3f}" if texts else "–" for fate in FATES]
        right, asked = same[0]["before"]
        rows.append([size, domain, arm, f"{right / asked:.3f}", joined(gains, "+.3f"), f"{fmean(gains):+.3f}"])
        own = texts["admitted"] / PROBLEMS / sum(run["rounds"] for run in same)
        rows[-1] += [mean_difference(beside), f"{own:.2f}", *fates]
    head = "size | problems | arm | before | gain, by seed | mean | against drawn | own"
    return markdown(" | ".join([head, *FATES]), rows)


def _gain(run: Run) -> float:
    return (run["gained"] - run["lost"]) / run["after"][1]


if __name__ == "__main__":
    main()
