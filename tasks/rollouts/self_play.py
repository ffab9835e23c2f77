"""Self-play: the student writes its own practice problems, then answers those that are new and not in the exam.

A proposal earns most if the student solves its problem half the time, and less if the round has many similar ones.
"""

import json
import random
from collections import Counter, defaultdict
from collections.abc import Sequence
from pathlib import Path
from statistics import fmean

from conf.schema import BenchmarkConfig, GrpoConfig, StudentConfig
from conf.sections.stages import SelfPlayConfig
from conf.storage.home import InputError
from models.hf.loading import load_tokenizer, prompt_tokens
from rewards.data.benchmarks import configured
from rewards.data.contamination import exam_index
from rewards.verifier import Benchmark
from tasks.rollouts.sample import sampled_rollouts
from tasks.stage import Artifact, stage
from tasks.tables import (
    ADVANTAGES,
    PROMPTS,
    PROPOSALS,
    SCORES,
    Row,
    completion_key,
    read_table,
    table_rows,
    write_table,
)

QUESTIONER = "questioner"  # the `kind` of prompts that ask for a problem
EXAMPLES, POOL = 6, 400  # examples in a request, and problems to choose them from
FIXED = {"unreadable": -1.0, "repeated": 0.0}  # rewards of proposals that are not new problems


@stage()
def ask_for_problems(
    folder: Path,
    *,
    sources: tuple[BenchmarkConfig, ...],
    config: SelfPlayConfig,
    student: StudentConfig,
    checkpoint: Path,
    seed: str,
) -> None:
    """Write prompts that each ask for one new problem. Random examples in each prompt make the proposals vary.

    Raises InputError if no benchmark supports student-written problems.
    """
    entry, benchmark = proposing_benchmark(sources)
    tokenizer, chance = load_tokenizer(checkpoint, student.trust_remote_code), random.Random(seed)
    drawn = benchmark.draw(seed, POOL)
    pool = [problem for problem in drawn if benchmark.proposed(problem.question)] or drawn
    shown, rows = set[str](), list[Row]()
    for group in range(config.proposals):
        examples = chance.sample(pool, min(EXAMPLES, len(pool)))
        shown |= {problem.problem_id for problem in examples}
        messages = [{"role": "user", "content": benchmark.question_prompt(examples)}]
        rows.append(
            {"problem_id": f"{QUESTIONER}/{group}", "group": group, "messages": json.dumps(messages)}
            | {"prompt_token_ids": prompt_tokens(tokenizer, messages, student), "question": messages[0]["content"]}
            | {"kind": QUESTIONER, "source": "self_play", "entry": entry}
        )
    write_table(folder / "prompts.parquet", PROMPTS, rows)
    (folder / "shown.json").write_text(json.dumps(sorted(shown)))


def proposing_benchmark(sources: Sequence[BenchmarkConfig]) -> tuple[int, Benchmark]:
    """Return the first source that supports student-written problems, as index and benchmark, or raise InputError."""
    for entry, source in enumerate(sources):
        benchmark = configured(source)
        if benchmark.question_prompt(()):
            return entry, benchmark
    raise InputError(
        "stages: {self_play: …}: no benchmark has `question_prompt` and `proposed`; arithmetic has, and "
        "docs/self-play.md says how one of your own gets them"
    )


@stage()
def admit(
    folder: Path,
    *,
    requests: Artifact,
    proposals: Artifact,
    sources: tuple[BenchmarkConfig, ...],
    before: tuple[Artifact, ...],
    exam_questions: tuple[str, ...],
    student: StudentConfig,
    checkpoint: Path,
    max_prompt_tokens: int,
    count: int,
) -> None:
    """Write prompts for at most `count` of the proposed problems, and a table with the verdict on each proposal.

    Verdicts: `admitted`, `unreadable` (not a usable problem, or too close to an exam problem), `repeated` (shown as an
    example, or admitted earlier tonight) and `surplus` (over `count`, or too long). `before`: this stage's outputs in
    tonight's earlier rounds. Group numbers continue from `requests`.
    """
    entry, benchmark = proposing_benchmark(sources)
    tokenizer, exam = load_tokenizer(checkpoint, student.trust_remote_code), exam_index(exam_questions)
    first = len(read_table(requests.folder / "prompts.parquet", PROMPTS))
    asked = set(requests.read_json("shown.json"))
    asked |= {name for one in before for name in read_table(one.folder / "prompts.parquet", PROMPTS).problem_id}
    prompts, rows = list[Row](), list[Row]()
    for rollout in sampled_rollouts(proposals):
        problem = benchmark.proposed(rollout.text) if rollout.finish_reason == "stop" else None
        if problem and exam.has(problem.question):
            problem = None
        verdict, group = "unreadable", None
        if problem is not None:
            messages = [{"role": "user", "content": benchmark.prompt(problem)}]
            tokens = prompt_tokens(tokenizer, messages, student)
            if problem.problem_id in asked:
                verdict = "repeated"
            elif len(prompts) == count or len(tokens) > max_prompt_tokens:
                verdict = "surplus"
            else:
                verdict, group = "admitted", first + len(prompts)
                asked.add(problem.problem_id)
                prompts.append(
                    {"problem_id": problem.problem_id, "group": group, "messages": json.dumps(messages)}
                    | {"prompt_token_ids": tokens, "question": problem.question, "kind": benchmark.kind(problem)}
                    | {"source": "self_play", "benchmark": problem.benchmark, "truth": problem.truth}
                    | {"level": problem.level, "entry": entry}
                )
        rows.append(
            {"group": rollout.group, "sample": rollout.sample, "text": rollout.text, "verdict": verdict}
            | {"problem_id": problem and problem.problem_id, "kind": problem and benchmark.kind(problem)}
            | {"asked_group": group}
        )
    write_table(folder / "prompts.parquet", PROMPTS, prompts)
    write_table(folder / "proposals.parquet", PROPOSALS, rows)
    (folder / "selection.json").write_text(json.dumps({"drawn": len(prompts)}))


def question_reward(solved: float, share: float) -> float:
    """Return a question's reward: 4p(1 − p) − `share`, where p is `solved`, the share of its answers that are correct.

    4p(1 − p) is 1 if half of the answers are correct, and 0 if all or none are. The verifiers library uses this term;
    R-Zero (arXiv 2508.05004) uses min(p, 1 − p). `share`: the share of the round's problems that have the same kind as
    this one. Subtracting it follows R-Zero's penalty for similar questions.
    """
    return 4 * solved * (1 - solved) - share


@stage()
def credit_questions(
    folder: Path,
    *,
    prompts: Artifact,
    proposals: Artifact,
    answers: Artifact,
    scores: Artifact,
    credited: Artifact,
    grpo: GrpoConfig,
) -> None:
    """Write each proposal's advantage; null for a surplus one, and for an admitted one without graded answers.

    `prompts`: the output of `admit`. `answers`, `scores`, `credited`: rollouts, scores and advantages of the answers to
    these prompts. All proposals of the round share a baseline, separate from the answers' baselines, as in Absolute
    Zero (arXiv 2505.03335). Their advantages are multiplied by the ratio of answer tokens to question tokens, of those
    that are trained on, so that the shorter questions count as much in training as the answers.
    """
    import torch  # takes seconds to import, and the check before a night needs only `proposing_benchmark`

    from models.advantages import group_advantages

    judged = table_rows(prompts.folder / "proposals.parquet", PROPOSALS)
    solved: dict[int, list[float]] = defaultdict(list)
    for row in table_rows(scores.folder / "scores.parquet", SCORES):
        if row["reward"] is not None:
            solved[row["group"]].append(float(row["verdict"] == "correct"))
    asked = [row for row in judged if row["verdict"] == "admitted" and solved[row["asked_group"]]]
    kinds = Counter(row["kind"] for row in asked)
    rewards = {(row["group"], row["sample"]): FIXED[row["verdict"]] for row in judged if row["verdict"] in FIXED}
    for row in asked:
        reward = question_reward(fmean(solved[row["asked_group"]]), kinds[row["kind"]] / len(asked))
        rewards[row["group"], row["sample"]] = reward
    written = sampled_rollouts(proposals)
    given = torch.tensor([rewards.get((one.group, one.sample), float("nan")) for one in written])
    advantages = group_advantages(given.view(1, -1).double(), grpo.scale)
    table = read_table(credited.folder / "advantages.parquet", ADVANTAGES).dropna(subset=["advantage"])
    table = table[table.groupby("group")["advantage"].transform("any")]  # without groups that have no signal
    trained_on = set(zip(table["group"], table["sample"], strict=True))
    questions = sum(one.written for one in written if (one.group, one.sample) in rewards)
    replies = sum(one.written for one in sampled_rollouts(answers) if (one.group, one.sample) in trained_on)
    weighted = (advantages * replies / questions).flatten().tolist()
    rows: list[Row] = [
        completion_key(one) | {"advantage": None if weight != weight else weight}
        for one, weight in zip(written, weighted, strict=True)
    ]
    write_table(folder / "advantages.parquet", ADVANTAGES, rows)
    signal = (advantages.nan_to_num(0.0) != 0).flatten()
    (folder / "signal.json").write_text(json.dumps({"groups": len(signal), "with_signal": int(signal.sum())}))
