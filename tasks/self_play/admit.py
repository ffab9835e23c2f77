"""Which of the student's proposals become problems: those that are new, and not the exam's."""

import json
from collections.abc import Sequence, Set
from pathlib import Path
from typing import NamedTuple

from conf.schema import BenchmarkConfig, StudentConfig
from models.hf.loading import load_tokenizer, prompt_tokens
from models.rollout import Rollout
from rewards.data.contamination import exam_index
from rewards.verifier import Benchmark, Problem
from tasks.rollouts.sample import sampled_rollouts
from tasks.self_play.ask import asking
from tasks.stage import Artifact, stage
from tasks.tables import PROMPTS, PROPOSALS, Row, read_table, write_table


class Proposal(NamedTuple):
    """A text and what became of it: admitted, unreadable, repeated (an example, or tonight's) or surplus."""

    rollout: Rollout
    verdict: str
    problem: Problem | None


@stage()
def admit(
    folder: Path,
    *,
    requests: Artifact,
    proposals: Artifact,
    sources: tuple[BenchmarkConfig, ...],
    before: tuple[Artifact, ...],
    excluded: tuple[str, ...],
    student: StudentConfig,
    checkpoint: Path,
    max_prompt_tokens: int,
    count: int,
) -> None:
    """Write the prompts of at most `count` proposed problems, and what became of each proposal.

    `before`: what tonight's earlier rounds of self-play admitted; neither it nor an example is new. `excluded`:
    ids and questions of the exam's problems; neither they nor problems that ask nearly the same are admitted. Groups
    are numbered on from those of the `requests`.
    """
    entry, benchmark = asking(sources)
    tokenizer = load_tokenizer(checkpoint, student.trust_remote_code)
    first = len(read_table(requests.folder / "prompts.parquet", PROMPTS))
    asked = set(requests.read_json("shown.json"))
    asked |= {name for one in before for name in read_table(one.folder / "prompts.parquet", PROMPTS).problem_id}
    prompts: list[Row] = []
    rows: list[Row] = []
    for proposal in assessed(sampled_rollouts(proposals), benchmark, asked, excluded, count):
        rollout, verdict, problem = proposal
        group = None
        if problem is not None and verdict == "admitted":
            messages = [{"role": "user", "content": benchmark.prompt(problem)}]
            tokens = prompt_tokens(tokenizer, messages, student)
            if len(tokens) > max_prompt_tokens:
                verdict = "surplus"
            else:
                group = first + len(prompts)
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
    (folder / "excluded.json").write_text("{}")


def assessed(
    rollouts: Sequence[Rollout], benchmark: Benchmark, asked: Set[str], excluded: Sequence[str], count: int
) -> list[Proposal]:
    """Return the proposals with their verdicts; the first `count` that can be are admitted."""
    exam, forbidden, seen, found = exam_index(tuple(excluded)), set(excluded), set(asked), list[Proposal]()
    left = count
    for rollout in rollouts:
        problem = benchmark.proposed(rollout.text) if rollout.finish_reason == "stop" else None
        if problem is None or {problem.problem_id, problem.question} & forbidden or exam.asks(problem.question):
            found.append(Proposal(rollout, "unreadable", None))
        elif problem.problem_id in seen:
            found.append(Proposal(rollout, "repeated", problem))
        elif not left:
            found.append(Proposal(rollout, "surplus", problem))
        else:
            seen.add(problem.problem_id)
            left -= 1
            found.append(Proposal(rollout, "admitted", problem))
    return found
