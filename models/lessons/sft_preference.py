"""The training steps of lessons: supervised (imitation) and preference-based (KTO, DPO).

Each lesson is a generator function that yields every step's metrics as soon as the step is taken.
"""

import time
from collections import defaultdict
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from typing import TypeVar

import torch
from jaxtyping import Float
from torch import Tensor
from torch.nn.functional import logsigmoid

from conf.sections.lessons import CorrectionsConfig, DistillConfig, FeedbackConfig, LessonConfig, PicksConfig
from models.lessons.pace import Pace, paced, plan_steps
from models.lessons.preference_data import EpisodeExample, Example, Pick, RatedAnswer
from models.packing.packing import Group, Pack, answer_groups
from models.trainer import Trainer

BETA = 0.1  # of KTO and DPO; a smaller value lets the policy move further from the reference
T = TypeVar("T")
Metrics = dict[str, float]
# A step's loss: log-probabilities of whole answers (nats, in row order) → (loss, metrics)
AnswersLoss = Callable[[Float[Tensor, "answers"]], tuple[Tensor, Metrics]]


def imitation(
    trainer: Trainer,
    examples: Sequence[Example | EpisodeExample],
    config: DistillConfig | LessonConfig,
    seed: int,
    pace: Pace | None = None,
) -> Iterator[Metrics]:
    """Take supervised steps on the shuffled examples (see `plan_steps`), each on its answers' mean cross-entropy.

    Up to four repetitions of a text teach about as much as new text; further ones teach less and less (Muennighoff et
    al. 2023, arXiv:2305.16264). With a `pace`, the number of steps is fixed after the second step. Until then, the
    learning rate decays as if all planned steps were taken. A restarted lesson, whose number of steps is already fixed,
    does the same, to give the same bits.
    """
    linear = isinstance(config, DistillConfig) and config.schedule == "linear"
    for step, steps, batch in paced(batches(examples, config, seed), pace, tokens):
        if linear:
            trainer.weights.rate_factor = 1 - step / steps
        yield {"step": step + 1.0} | trainer.imitate(batch)


def kto(
    trainer: Trainer, examples: Sequence[RatedAnswer], config: FeedbackConfig, seed: int, pace: Pace | None = None
) -> Iterator[Metrics]:
    """Take KTO steps on praised and criticised answers (see `kto_loss`).

    The KL term is estimated within each step, from pairs of a prompt and the answer of the example before it. A step
    with a single example has no such pair, so its KL term is 0. An answer counts by its rating's size, and all the
    lesson's praise weighs as much as all its criticism.
    """
    began, steps, sizes = time.perf_counter(), [], [abs(example.rating) for example in examples]
    praised = sum(max(example.rating, 0.0) for example in examples) / (sum(sizes) or 1.0)
    weights = (0.5 / praised, 0.5 / (1 - praised)) if 0 < praised < 1 else (1.0, 1.0)
    for batch in batches(examples, config, seed):
        rated = answer_groups([(example.prompt, [example.answer]) for example in batch])
        previous = [batch[-1], *batch[:-1]] if len(batch) > 1 else []
        pairs = [(example.prompt, [other.answer]) for example, other in zip(batch, previous, strict=False)]
        mismatched = answer_groups(pairs)
        steps.append((batch, rated, mismatched, answer_logprobs(trainer, rated), answer_logprobs(trainer, mismatched)))
    for step, _, (batch, rated, mismatched, reference, mismatched_reference) in paced(steps, pace and pace.left(began)):
        loss = partial(
            kto_loss,
            reference=reference,
            ratings=torch.tensor([example.rating for example in batch], device=trainer.device),
            kl=kto_kl(answer_logprobs(trainer, mismatched), mismatched_reference),
            beta=BETA,
            weights=weights,
        )
        yield {"step": step + 1.0} | preference_step(trainer, rated, loss)


def dpo(
    trainer: Trainer,
    picks: Sequence[Pick],
    config: PicksConfig | CorrectionsConfig,
    seed: int,
    pace: Pace | None = None,
) -> Iterator[Metrics]:
    """Take DPO steps on picks (see `dpo_loss`), pairing each pick's chosen answer with each of its other answers.

    A correction is also imitated: the mean of −log π/length over the chosen answers is added to the loss, because DPO
    alone may make both answers less likely (Pang et al. 2024, arXiv 2404.19733).

    Picks are learned until the answers shown have become less likely by `most_kl`, measured before each step. They were
    sampled from roughly the policy at the lesson's start, so this estimates KL(start ‖ policy). Further steps please
    the owner with worse and worse answers (docs/teaching.md, "The reward model in the rounds").
    """
    began, steps, imitated = time.perf_counter(), [], isinstance(config, CorrectionsConfig)
    for batch in batches(picks, config, seed):
        groups = answer_groups([(pick.prompt, pick.answers) for pick in batch])
        pairs = [
            (group.rows[pick.chosen], rejected)
            for pick, group in zip(batch, groups, strict=True)
            for index, rejected in enumerate(group.rows)
            if index != pick.chosen
        ]
        lengths = [len(pick.answers[pick.chosen]) for pick in batch for _ in pick.answers[1:]]
        total = sum(sum(pick.lengths) for pick in batch)
        steps.append((groups, pairs, lengths if imitated else (), total, answer_logprobs(trainer, groups)))
    for step, _, (groups, pairs, lengths, total, reference) in paced(steps, pace and pace.left(began)):
        loss = partial(_dpo_of_pairs, reference=reference, pairs=pairs, imitated=lengths, total=total)
        metrics = preference_step(trainer, groups, loss)
        yield {"step": step + 1.0} | metrics
        if isinstance(config, PicksConfig) and metrics["kl"] > config.most_kl:
            return


def _dpo_of_pairs(
    policy: Tensor, reference: Tensor, pairs: Sequence[tuple[int, int]], imitated: Sequence[int], total: int
) -> tuple[Tensor, Metrics]:
    """Return `dpo_loss` for answers' log-probabilities. `pairs`: each pair's rows (chosen answer, rejected answer).

    `imitated`: the chosen answers' lengths, if their cross-entropy is added. `total`: the number of tokens in all
    answers. The metric `kl` is by how many nats a token the answers have become less likely.
    """
    chosen, rejected = (list(rows) for rows in zip(*pairs, strict=True))
    loss, metrics = dpo_loss(policy[chosen], policy[rejected], reference[chosen], reference[rejected], BETA)
    metrics["kl"] = float((reference - policy).detach().sum()) / total
    if imitated:
        loss = loss - (policy[chosen] / torch.tensor(imitated, device=policy.device)).mean()
    return loss, metrics


def dpo_loss(
    chosen: Float[Tensor, "pairs"],
    rejected: Float[Tensor, "pairs"],
    reference_chosen: Float[Tensor, "pairs"],
    reference_rejected: Float[Tensor, "pairs"],
    beta: float,
) -> tuple[Tensor, dict[str, float]]:
    """Return the mean over pairs of −log σ(β(log π/π_ref(chosen) − log π/π_ref(rejected))), and metrics.

    This is DPO, arXiv 2305.18290, equation 7. The inputs are log-probabilities summed over an answer's tokens, in nats.
    Metrics: `margin`, the mean of σ's argument, and `accuracy`, the share of pairs whose argument is above 0.
    """
    margin = beta * ((chosen - reference_chosen) - (rejected - reference_rejected))
    values = margin.detach()
    return -logsigmoid(margin).mean(), {"margin": float(values.mean()), "accuracy": float((values > 0).float().mean())}


def kto_loss(
    policy: Float[Tensor, "answers"],
    reference: Float[Tensor, "answers"],
    ratings: Float[Tensor, "answers"],
    kl: Tensor,
    *,
    beta: float,
    weights: tuple[float, float] = (1.0, 1.0),
) -> tuple[Tensor, dict[str, float]]:
    """Return the mean over answers of λ(1 − v), and metrics (KTO, arXiv 2402.01306, equations 7 and 8).

    v is σ(β(r − z)) for a desirable answer (rated above 0) and σ(β(z − r)) for an undesirable one. r is log π/π_ref of
    the whole answer; z is `kl`, which gets no gradient (see `kto_kl`). λ is the rating's size times the answer's weight
    in `weights`, (desirable, undesirable); in the paper all ratings are of size 1.
    Metrics: `kl`, and the mean of β r over the `desirable` and over the `undesirable` answers, if there are any.
    """
    ratio, kl, desirable = policy - reference, kl.detach(), ratings > 0
    size = ratings.abs() * torch.where(desirable, *weights)
    loss = (size * (1 - torch.sigmoid(ratings.sign() * beta * (ratio - kl)))).mean()
    rewards = {"desirable": beta * ratio.detach()[desirable], "undesirable": beta * ratio.detach()[~desirable]}
    return loss, {"kl": float(kl)} | {name: float(side.mean()) for name, side in rewards.items() if len(side)}


def kto_kl(policy: Float[Tensor, "pairs"], reference: Float[Tensor, "pairs"]) -> Tensor:
    """Return KTO's reference point: the mean of log π/π_ref over mismatched prompts and answers, but at least 0.

    This is a biased but cheap estimate of KL(π‖π_ref) (arXiv 2402.01306, section 4.1). It is 0 without pairs.
    """
    return (policy - reference).mean().clamp(min=0.0) if len(policy) else policy.new_zeros(())


def preference_step(trainer: Trainer, groups: Sequence[Group], loss: AnswersLoss) -> Metrics:
    """Take one optimizer step on a loss on whole answers' log-probabilities that couples only answers of one group.

    Each microbatch is trained on the loss as a function of its own answers. If it holds only a part of a group, the
    log-probabilities of all answers are first computed without gradients: by the chain rule, the gradients then add up
    to that of the whole loss, as in GradCache (arXiv 2101.06983, section 3.2). Dropout is off, as in TRL, because it
    would give that pass a different policy.
    """
    policy = torch.zeros(sum(len(group.rows) for group in groups), device=trainer.device)
    known = False

    def of_microbatch(logprobs: Tensor, packed: Pack, entropies: Tensor) -> tuple[Tensor, Metrics]:
        nonlocal known
        held, rows = {*packed.rows}, torch.tensor(packed.rows, device=trainer.device)
        if not known and any(0 < len(held.intersection(group.rows)) < len(group.rows) for group in groups):
            policy.copy_(answer_logprobs(trainer, groups))
            known = True
        own = torch.stack([tokens.sum() for tokens in logprobs.split([*packed.lengths])])
        policy[rows] = own.detach()
        return loss(policy.index_put((rows,), own))[0], {}

    sums: dict[str, float] = defaultdict(float)
    trainer.optimizer_step(groups, of_microbatch, sums, dropout=False)
    total, metrics = loss(policy)
    return {"loss": float(total), "grad_norm": sums["grad_norm"]} | metrics


def answer_logprobs(trainer: Trainer, groups: Sequence[Group]) -> Float[Tensor, "answers"]:
    """Return log π of each whole answer, in nats, in the order of the rows, without gradients."""
    logprobs = trainer.completion_logprobs(groups)
    return torch.tensor([float(logprobs[row].sum()) for row in sorted(logprobs)], device=trainer.device)


def tokens(examples: Sequence[Example | EpisodeExample]) -> int:
    """Return the number of tokens of supervised examples."""
    return sum(len(example[0]) + len(example[1]) for example in examples)


def batches(lines: Sequence[T], config: DistillConfig | LessonConfig, seed: int) -> list[list[T]]:
    """Return the examples of each step (see `plan_steps`)."""
    return [[lines[number] for number in step] for step in plan_steps(len(lines), config, seed)]
