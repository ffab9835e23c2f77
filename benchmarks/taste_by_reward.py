"""Does GRPO with a reward model teach an owner's taste, and does it teach more than DPO?

    python -m benchmarks.taste_by_reward [--tastes short polite] [--arms dpo …] [--seeds 1 2 3] [--picks 200]

The starter writes five answers to each of 200 everyday questions, and a simulated owner picks one by its taste. A night
follows. In the arm `reward model` it fits one to three quarters of the picks, and its rounds ask their questions again;
`dpo` learns the picks directly; `both` does one after the other, and `both at 5e-6` at a night's default rate; in `true
taste` the rounds are rewarded by the taste itself (the most that a reward model could bring); in `random picks`, the
reward model should be refused. `ten times the rate` pushes the student so hard that an alarm should fire and the
champion stay.

*Short* picks the shortest answer. *Polite* picks an answer with a polite word, which a student can please without a
sensible answer; questions are asked twice, because in half of the cases no answer has one, or all have, and nothing is
picked.

Before and after, the student answers 200 other questions, once each, at the classroom's temperature. Each run is a line
in docs/taste-by-reward.jsonl and is not repeated in the same precision; interrupted nights resume. Writes the table in
docs/teaching.md.
"""

import json
import random
import re
import statistics
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import torch

from benchmarks.eligibility import log_distribution
from benchmarks.inputs import owners
from benchmarks.inputs.answers import sampled
from benchmarks.inputs.options import options
from benchmarks.inputs.owners import GOOD, TOKENS, TOPICS
from benchmarks.inputs.school import SCHOOL, make
from benchmarks.inputs.starter import starter
from benchmarks.machine.child import engine
from benchmarks.nights.timed import DATE
from benchmarks.nights.whole import whole_night
from benchmarks.outputs.page import fill, markdown
from benchmarks.outputs.power import detectable_mean, mean_difference
from benchmarks.outputs.records import Run, by, flips, ordered, paired, precision, sweep
from conf.load import STARTER, load_night
from conf.storage.journal import entry_of, line_of
from conf.storage.layout import committed_json
from flows.run.history import read_round_metrics
from models.hf.loading import encode, load_model, load_tokenizer, prompt_tokens
from rewards.verifier import Attempt, Problem, Score, Split
from tasks.evaluation.english import mean_nats

RESULTS, PAGE, NAME = Path("docs/taste-by-reward.jsonl"), Path("docs/teaching.md"), "benchmarks.taste_by_reward"
HOMES = SCHOOL / "taste-by-reward"
ANSWERS = 5
FORMS = (
    *owners.FORMS,
    "What would you tell a child about {}?",
    "Write a short note to a friend about {}.",
    "Answer a customer who asks about {} in two sentences.",
    "Write a short reply to somebody who likes {}.",
    "Invite a friend to talk about {}, in one sentence.",
    "Thank a neighbour for a gift that has to do with {}.",
)
QUESTIONS = random.Random("taste by reward").sample(
    [form.format(topic) for form in FORMS for topic in TOPICS.split("|")], 400
)
TAUGHT, UNSEEN = QUESTIONS[:200], QUESTIONS[200:]
POLITE = re.compile(r"\b(thank|hope|please|welcome|enjoy|glad|regards|sincerely|best wishes|happy to)", re.IGNORECASE)

TASTES: Mapping[str, Callable[[str], bool]] = {
    "short": GOOD["short"],
    "polite": lambda text: POLITE.search(text) is not None,
}
ARMS: Mapping[str, tuple[str, ...]] = {
    "reward model": ("stages=[{grpo: 6}]", "preference_learning=reward_model"),
    "dpo": ("stages=[lessons]", "preference_learning=direct"),
    "both": ("stages=[lessons, {grpo: 6}]", "preference_learning=both"),
    "both at 5e-6": ("stages=[lessons, {grpo: 6}]", "preference_learning=both", "optimizer.learning_rate=5e-6"),
    "true taste": ("stages=[{grpo: 6}]", "preference_learning=direct"),
    "ten times the rate": ("stages=[{grpo: 6}]", "preference_learning=reward_model", "optimizer.learning_rate=2e-4"),
    "random picks": ("stages=[{grpo: 1}]", "preference_learning=reward_model"),
}
NIGHT = (
    # six rounds are few, so they take larger steps than a night of arithmetic
    *("learned_reward.owner_share=1", "grpo.prompts_per_round=16", "grpo.group_size=8", "optimizer.learning_rate=2e-5"),
    *("budget_minutes=null", "day.generated_traces=0", "lessons.quiz_problems=0", "grpo.quiz_every_rounds=0"),
    *(f"grpo.max_completion_tokens={TOKENS}", "exam.target.problems=50"),
    "exam.guards=[{benchmark: instructions, problems: 100, margin: 0.3}]",
)


class Short:
    """The questions, rewarded by the taste itself."""

    name = taste = "short"

    def __init__(self, source: str | None = None) -> None: ...

    def problems(self, split: Split) -> list[Problem]:
        """Return the questions that the owner asked, or those that nobody asked."""
        asked = TAUGHT if split == "train" else UNSEEN
        return [Problem(f"{self.name}/{number}", self.name, question, "") for number, question in enumerate(asked)]

    def score(self, attempts: Sequence[Attempt]) -> list[Score]:
        """Return 1 for each answer that the owner likes."""
        return [Score.of("correct" if TASTES[self.taste](one.completion) else "wrong") for one in attempts]


class Polite(Short):
    """The same for the other taste."""

    name = taste = "polite"


def main() -> None:
    """Do the missing runs, and write the table of all."""
    given = options(__doc__, {"--tastes": TASTES, "--arms": ARMS, "--seeds": [1, 2, 3], "--picks": len(TAUGHT)})
    axes = {"taste": given.tastes, "arm": given.arms, "picks": [given.picks], "precision": [precision()]}
    fill(PAGE, NAME, table(sweep(RESULTS, night, **axes, seed=given.seeds)))


def night(taste: str, arm: str, picks: int, precision: str, seed: int) -> dict[str, Any]:
    """Write the picks, run a night in this machine's precision, and rate the student before and after it."""
    student = starter().resolve()
    home = make(HOMES / f"{taste}-{arm}-{picks}-{seed}".replace(" ", "-"))
    asked = 1 if taste == "short" else 2  # times
    shown = [
        (question, group[ANSWERS * time :][:ANSWERS])
        for question, group in zip(TAUGHT, answers(student, TAUGHT, ANSWERS * asked, seed), strict=True)
        for time in range(asked)
    ]
    picked = journal(home, shown, picks, taste if arm != "random picks" else "", seed)
    settings = [*NIGHT, *ARMS[arm], f"seed={seed}"]
    if arm == "true taste":
        settings.append(f"benchmarks=[{{name: 'benchmarks.taste_by_reward:{taste.title()}'}}]")
    found = whole_night(home, *settings)
    folder, digests = found["folder"], found["digests"]
    candidate = (home / "checkpoints" / digests["candidate"]).resolve()
    earlier, later = ([text for [(text, _)] in answers(model, UNSEEN, 1, 1000)] for model in (student, candidate))
    before, after = ([TASTES[taste](text) for text in texts] for texts in (earlier, later))
    fit = committed_json(folder / "fit_reward_model", "outcome.json") or {}
    return {
        "minutes": found["minutes"],
        "picked": picked,
        "before": sum(before),
        "after": sum(after),
        "gained": sum(b < a for b, a in zip(before, after, strict=True)),
        "lost": sum(b > a for b, a in zip(before, after, strict=True)),
        "serves": fit.get("serves"),
        "held_out": fit.get("accuracy"),
        "reward": [figures.get("reward/learned", figures.get("reward")) for figures in read_round_metrics(folder)],
        "log_ratio": log_ratio(candidate, student, later),
        "instructions": found["benchmarks"].get("instructions"),
        "english": [mean_nats(folder / "evaluate" / role) for role in ("champion", "candidate")],
        "decision": found["decision"],
        "alarms": found["alarms"],
        "reasons": found["reasons"],
    }


def answers(model: Path, questions: Sequence[str], samples: int, seed: int) -> list[list[tuple[str, bool]]]:
    """Return answers to each question and whether each was cut off, at the classroom's temperature.

    The starter's are sampled once a seed.
    """
    cache = HOMES / f"{model.name}-{precision()}-{len(questions)}-{samples}-{seed}.json"
    if not cache.exists():
        talks = [[{"role": "user", "content": question}] for question in questions]
        with engine() as worker:
            groups = sampled(worker, model, talks, samples, seed)
        cache.write_text(json.dumps([[(one.text, one.finish_reason == "length") for one in group] for group in groups]))
    return json.loads(cache.read_text())


def log_ratio(model: Path, base: Path, written: Sequence[str]) -> float | None:
    """Return how much likelier a model's answers to the unseen questions are under it than under `base`, nats a token.

    At temperature 1 this would estimate KL(model‖base). Returns None if all answers are empty.
    """
    student, total, count = load_night(STARTER).student, 0.0, 0
    tokenizer = load_tokenizer(base, student.trust_remote_code)
    loaded = [load_model(each, torch.float32, torch.device("cpu"), False).eval() for each in (model, base)]
    for question, text in zip(UNSEEN, written, strict=True):
        prompt = prompt_tokens(tokenizer, [{"role": "user", "content": question}], student)
        if answer := encode(tokenizer, text):
            chosen = torch.tensor(answer)[:, None]
            with torch.no_grad():
                own, other = (log_distribution(each, prompt, answer).gather(1, chosen).sum() for each in loaded)
            total, count = total + float(own - other), count + len(answer)
    return total / count if count else None


def journal(
    home: Path, shown: Sequence[tuple[str, Sequence[tuple[str, bool]]]], most: int, taste: str, seed: int
) -> int:
    """Write the first `most` picks of an owner, who picks any answer without a taste. Return their number."""
    chance, lines = random.Random(seed), list[bytes]()
    for question, group in shown:
        texts = [*dict.fromkeys(text for text, _ in group if text.strip())]
        liked = [at for at, text in enumerate(texts) if not taste or TASTES[taste](text)]
        if taste == "short":
            liked = [min(range(len(texts)), key=lambda at: len(texts[at]))]
        if len(texts) < 2 or len(lines) == most or (taste and len(liked) in (0, len(texts))):
            continue
        asked = [{"role": "user", "content": question}]
        entry = {"kind": "preference", "messages": asked, "responses": texts, "chosen": chance.choice(liked)}
        entry |= {"at": f"{DATE}T12:00:00+00:00", "unfinished": sorted({text for text, cut in group if cut})}
        lines.append(line_of(entry_of(entry | {"policy": "starter"})))
    folder = home / "journal"
    folder.mkdir(exist_ok=True)
    (folder / f"{DATE}.jsonl").write_bytes(b"".join(lines))
    return len(lines)


def table(runs: Sequence[Run]) -> str:
    """Return a Markdown table: each arm's share of liked answers before and after, by seed.

    Its gain is also compared with that of `dpo` in the same precision, seed by seed, with Student's 95 % interval and
    the smallest difference that would be detected.
    """
    rows, count = [], len(UNSEEN)
    runs = ordered(runs, taste=TASTES, picks=None, arm=ARMS, precision=None, seed=None)
    kinds = by(runs, "taste", "arm", "picks", "precision")
    for (taste, arm, picks, used), same in kinds.items():
        rates = "; ".join(f"{run['before'] / count:.2f} → {run['after'] / count:.2f}" for run in same)
        gain = statistics.mean(map(_gain, same))
        less = paired(same, kinds.get((taste, "dpo", picks, used), []), _gain) if arm != "dpo" else []
        *_, p = flips(same)
        changes = [run["log_ratio"] for run in same if run["log_ratio"] is not None]
        change = f"{statistics.mean(changes):.3f}" if changes else "–"
        serves = f"{sum(bool(run['serves']) for run in same)} of {len(same)}" if same[0]["held_out"] else "–"
        least = detectable_mean(np.array(less), 0.025)
        beside = mean_difference(less, 2) + ("" if least is None else f", {least:.2f} detectable")
        rows.append([taste, arm, picks, used, rates, f"{gain:+.2f}", beside, f"{p:.2g}", change, serves])
    head = "taste | arm | picks, at most | precision | liked answers, by seed | mean gain | minus that of `dpo` | p"
    return markdown(f"{head} | change, nats a token | reward model used", rows)


def _gain(run: Run) -> float:
    return (run["after"] - run["before"]) / len(UNSEEN)


if __name__ == "__main__":
    main()
