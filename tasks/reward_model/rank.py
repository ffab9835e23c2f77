"""How the student itself ranks the answers of the owner's held-out picks: what over-optimisation is told by."""

import json
from collections.abc import Sequence
from pathlib import Path
from statistics import fmean
from typing import Any

from conf.schema import StudentConfig, TrainerConfig
from models.hf.loading import answer_tokens, load_tokenizer, prompt_tokens
from models.rollout import Rollout
from tasks.stage import Artifact, stage
from tasks.tables import HELD_OUT, read_table
from tasks.training import trainer_process
from tasks.training.trainer_process import Predecessor
from tasks.workers import Worker

MOST = 200  # picks: a share of them is then known to 7 points, and no round waits for it


@stage(retries=2, resources=("predecessor", "trainer"))
def rank_picks(
    folder: Path,
    *,
    reward_model: Artifact,
    policy: str,
    tokenizer: Path,
    student: StudentConfig,
    config: TrainerConfig,
    predecessor: Predecessor | None,
    trainer: Worker,
) -> None:
    """Whether the policy finds the answer that was picked the likeliest of those shown, for each held-out pick, or for
    a draw of 200 of them, old and new: in every ranking of a night the same.

    An answer's likelihood is the mean log-probability of its tokens, the end token included (nats a token). `policy` is
    the digest of what `predecessor` stands at; None: of the checkpoint `tokenizer`, which nothing goes on from.
    `ranking.json`: `right`, one a pick, and their share, `accuracy`.
    """
    held_out = read_table(reward_model.folder / "held_out.parquet", HELD_OUT)
    picks: Any = held_out.sample(min(MOST, len(held_out)), random_state=0).sort_index()
    asked = [
        (json.loads(pick.messages), [str(answer) for answer in json.loads(pick.responses)], int(pick.chosen))
        for pick in picks.itertuples()
    ]
    words = load_tokenizer(tokenizer, student.trust_remote_code)
    rollouts = [
        _as_rollout(number, place, prompt_tokens(words, messages, student), answer_tokens(words, answer), policy)
        for number, (messages, answers, _) in enumerate(asked)
        for place, answer in enumerate(answers)
    ]
    if predecessor is None:
        found = trainer.call(trainer_process.logprobs_of, tokenizer, config, rollouts)
    else:
        found = trainer.call(trainer_process.logprobs, predecessor, config, rollouts)
    likelihoods = iter(map(fmean, found))
    right = [_is_first([next(likelihoods) for _ in answers], chosen) for _, answers, chosen in asked]
    accuracy = fmean(right) if right else None
    (folder / "ranking.json").write_text(json.dumps({"accuracy": accuracy, "right": right}))


def _is_first(likelihoods: Sequence[float], chosen: int) -> bool:
    return all(likelihoods[chosen] > other for place, other in enumerate(likelihoods) if place != chosen)


def _as_rollout(number: int, place: int, prompt: list[int], answer: list[int], policy: str) -> Rollout:
    mask = [True] * len(answer)
    return Rollout(str(number), number, place, prompt, answer, [0.0] * len(answer), mask, "stop", "", policy)
