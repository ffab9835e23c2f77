"""Rank the answers of held-out picks by their likelihood under the policy, to reveal over-optimization."""

import hashlib
import json
from pathlib import Path
from statistics import fmean
from typing import Any

from conf.schema import StudentConfig, TrainerConfig
from models.hf.loading import answer_tokens, load_tokenizer, prompt_tokens
from models.lessons.preference_data import opening
from models.lessons.ranking import margin
from models.rollout import Rollout
from tasks.journal.tables import HELD_OUT
from tasks.stage import Artifact, stage
from tasks.tables import read_table, unfinished
from tasks.training import trainer_process
from tasks.training.trainer_process import Predecessor
from tasks.workers.worker import Worker

MAX_PICKS = 200  # enough for a 95 % interval of ±7 points, and few enough not to delay a round


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
    """For each held-out pick, write to `ranking.json` whether the policy finds the picked answer the most likely.

    If there are more than 200 picks, 200 are drawn, the same in every ranking of a night. An answer's likelihood is the
    mean log-probability of its tokens, in nats, with an end token if it ended. `policy`: the digest of the policy's
    weights. `predecessor`: the state that holds these weights; if None, they are those of the checkpoint `tokenizer`.
    `ranking.json` has one value per pick in four lists. `right`: whether the picked answer is the most likely one.
    `margins`: how far its likelihood lies above the mean of the others (see `margin`). `generated`: whether the pick is
    from the generated day. `openings`: a digest that all picks of a conversation share. `accuracy` is the mean of
    `right`.
    """
    held_out = read_table(reward_model.folder / "held_out.parquet", HELD_OUT)
    picks: Any = held_out.sample(min(MAX_PICKS, len(held_out)), random_state=0).sort_index()
    rankings = [
        (json.loads(pick.messages), json.loads(pick.responses), int(pick.chosen), unfinished(pick.unfinished))
        for pick in picks.itertuples()
    ]
    encoder = load_tokenizer(tokenizer, student.trust_remote_code)
    rollouts = list[Rollout]()
    for group, (messages, answers, _, cut) in enumerate(rankings):
        prompt = prompt_tokens(encoder, messages, student)
        for sample, answer in enumerate(answers):
            tokens = answer_tokens(encoder, answer, answer not in cut)
            zeros, mask = [0.0] * len(tokens), [True] * len(tokens)
            rollouts.append(Rollout(str(group), group, sample, prompt, tokens, zeros, mask, "stop", "", policy))
    if predecessor is None:
        logprobs = trainer.call(trainer_process.logprobs_of, tokenizer, config, rollouts)
    else:
        logprobs = trainer.call(trainer_process.logprobs, predecessor, config, rollouts)
    likelihoods, right, margins = iter(map(fmean, logprobs)), list[bool](), list[float]()
    for _, answers, chosen, _ in rankings:
        found = [next(likelihoods) for _ in answers]
        right.append(all(found[chosen] > other for at, other in enumerate(found) if at != chosen))
        margins.append(margin(found, chosen))
    accuracy = fmean(right) if right else None
    openings = [hashlib.sha256(opening(messages).encode()).hexdigest()[:12] for messages, *_ in rankings]
    written = {"accuracy": accuracy, "right": right, "margins": margins, "generated": picks.generated.tolist()}
    (folder / "ranking.json").write_text(json.dumps(written | {"openings": openings}))
