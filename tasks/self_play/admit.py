"""Which of the student's proposals become problems: those that are new, and not the exam's."""

import json
from pathlib import Path

from conf.schema import BenchmarkConfig, StudentConfig
from models.hf.loading import load_tokenizer, prompt_tokens
from rewards.data.contamination import exam_index
from tasks.rollouts.sample import sampled_rollouts
from tasks.self_play.ask import asking
from tasks.stage import Artifact, stage
from tasks.tables import PROMPTS, PROPOSALS, Row, read_table, write_table


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

    It is admitted, unreadable, repeated (an example, or tonight's) or surplus. `before`: what tonight's earlier rounds
    of self-play admitted; neither it nor an example is new. `excluded`: ids and questions of the exam's problems;
    neither they nor problems that ask nearly the same are admitted. Groups are numbered on from those of the
    `requests`.
    """
    entry, benchmark = asking(sources)
    tokenizer, exam = load_tokenizer(checkpoint, student.trust_remote_code), exam_index(excluded)
    first = len(read_table(requests.folder / "prompts.parquet", PROMPTS))
    asked = set(requests.read_json("shown.json"))
    asked |= {name for one in before for name in read_table(one.folder / "prompts.parquet", PROMPTS).problem_id}
    prompts, rows = list[Row](), list[Row]()
    for rollout in sampled_rollouts(proposals):
        problem = benchmark.proposed(rollout.text) if rollout.finish_reason == "stop" else None
        if problem and ({problem.problem_id, problem.question} & set(excluded) or exam.asks(problem.question)):
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
