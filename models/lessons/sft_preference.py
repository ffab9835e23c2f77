"""Distillation: supervised lessons on worked answers."""

import random
from collections import defaultdict
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from itertools import count, islice
from typing import TypeVar

import torch
from jaxtyping import Float
from torch import Tensor

from conf.sections.lessons import DistillConfig, FeedbackConfig, LessonConfig, PicksConfig
from models.lessons.preference_data import Example, Pick, RatedAnswer
from models.lessons.preference_losses import dpo_loss, kto_kl, kto_loss
from models.packing.packing import Group, Pack
from models.trainer import Trainer


def distill(
    trainer: Trainer, examples: Sequence[Example], config: DistillConfig, seed: int
) -> Iterator[dict[str, float]]:
    """Takes `config.steps` steps over the shuffled examples, or fewer of few; yields each step's metrics.

    No example comes more often than `max_epochs` times, and none again before all have come. The steps are equal but
    for one example. A few examples are learnt by heart, and a step moves the weights as far whatever it is made of: up
    to four times the same text teaches about as much as new one, and more teaches less and less (Muennighoff et al.
    2023, arXiv:2305.16264). Raises ValueError where there are steps but no examples.
    """
    if config.steps and not examples:
        raise ValueError("there is no example to learn from: leave the lesson out, or set distill.steps to 0")
    order = _shuffled(examples, seed)
    count = min(config.steps * config.batch_size, config.max_epochs * len(examples))
    steps = -(-count // config.batch_size)
    for step in range(steps):
        batch = list(islice(order, count * (step + 1) // steps - count * step // steps))
        yield {"step": step + 1.0} | trainer.imitate(batch)


def _shuffled(examples: Sequence[Example], seed: int) -> Iterator[Example]:
    chance = random.Random(seed)
    while True:
        yield from chance.sample(list(examples), len(examples))


T = TypeVar("T")
Metrics = dict[str, float]
# A step's loss: whole answers' log-probabilities, in nats, in the order of their rows → (loss, what to report)
AnswersLoss = Callable[[Float[Tensor, "answers"]], tuple[Tensor, Metrics]]


def imitation(trainer: Trainer, examples: Sequence[Example], config: LessonConfig, seed: int) -> Iterator[Metrics]:
    """Supervised steps: cross-entropy in the mean over a step's answer tokens. Yields each step's metrics."""
    for number, batch in enumerate(batches(examples, config, seed), 1):
        yield {"step": float(number)} | trainer.imitate(batch)


def kto(trainer: Trainer, examples: Sequence[RatedAnswer], config: FeedbackConfig, seed: int) -> Iterator[Metrics]:
    """Steps of KTO on praised and scolded answers (see `kto_loss`). Yields each step's metrics.

    The KL term is estimated within the step: each prompt with the answer of the example before it. A step of a single
    example has no such pair, and the term is 0.
    """
    steps = []
    for batch in batches(examples, config, seed):
        own = answer_groups([(one.prompt, [one.answer]) for one in batch])
        before = [batch[-1], *batch[:-1]] if len(batch) > 1 else []
        mismatched = answer_groups([(one.prompt, [last.answer]) for one, last in zip(batch, before, strict=False)])
        steps.append((batch, own, mismatched, answer_logprobs(trainer, own), answer_logprobs(trainer, mismatched)))
    for number, (batch, own, mismatched, reference, anchor) in enumerate(steps, 1):
        loss = partial(
            kto_loss,
            reference=reference,
            desirable=torch.tensor([one.desirable for one in batch], device=trainer.device),
            kl=kto_kl(answer_logprobs(trainer, mismatched), anchor),
            beta=config.beta,
            desirable_weight=config.desirable_weight,
            undesirable_weight=config.undesirable_weight,
        )
        yield {"step": float(number)} | preference_step(trainer, own, loss)


def dpo(trainer: Trainer, picks: Sequence[Pick], config: PicksConfig, seed: int) -> Iterator[Metrics]:
    """Steps of DPO (see `dpo_loss`): the answer picked against each of the others. Yields each step's metrics."""
    steps = []
    for batch in batches(picks, config, seed):
        groups = answer_groups([(pick.prompt, pick.answers) for pick in batch])
        pairs = [
            (group.rows[pick.chosen], other)
            for pick, group in zip(batch, groups, strict=True)
            for place, other in enumerate(group.rows)
            if place != pick.chosen
        ]
        steps.append((groups, pairs, answer_logprobs(trainer, groups)))
    for number, (groups, pairs, reference) in enumerate(steps, 1):
        loss = partial(_dpo_of_pairs, reference=reference, pairs=pairs, beta=config.beta)
        yield {"step": float(number)} | preference_step(trainer, groups, loss)


def _dpo_of_pairs(
    policy: Float[Tensor, "answers"],
    reference: Float[Tensor, "answers"],
    pairs: Sequence[tuple[int, int]],
    beta: float,
) -> tuple[Tensor, Metrics]:
    """`pairs`: the rows of the answer picked and of another."""
    picked, other = (list(rows) for rows in zip(*pairs, strict=True))
    return dpo_loss(policy[picked], policy[other], reference[picked], reference[other], beta)


def preference_step(trainer: Trainer, groups: Sequence[Group], loss: AnswersLoss) -> Metrics:
    """One optimizer step on a loss that joins whole answers, however these are cut into microbatches.

    The answers' log-probabilities first, without a gradient; the loss and its derivative by each of them; then one pass
    over the microbatches with the sum of derivative times log-probability, whose gradient is the loss's (the chain
    rule, in two passes as GradCache has it: arXiv 2101.06983, section 3.2). No pass has dropout, as in TRL: the
    derivatives would be those of another policy.
    """
    policy = answer_logprobs(trainer, groups).requires_grad_()
    total, metrics = loss(policy)
    (derivatives,) = torch.autograd.grad(total, policy)

    def share(logprobs: Tensor, packed: Pack, entropies: Tensor) -> tuple[Tensor, Metrics]:
        rows, lengths = (torch.tensor(x, device=trainer.device) for x in (packed.rows, packed.lengths))
        return (derivatives[rows].repeat_interleave(lengths) * logprobs).sum(), {}

    sums: dict[str, float] = defaultdict(float)
    trainer.optimizer_step(groups, share, sums, dropout=False)
    return {"loss": float(total.detach()), "grad_norm": sums["grad_norm"]} | metrics


def answer_logprobs(trainer: Trainer, groups: Sequence[Group]) -> Float[Tensor, "answers"]:
    """log π of every whole answer, in nats, in the order of the rows; the weights stay as they are."""
    found = trainer.completion_logprobs(groups)
    return torch.tensor([float(found[row].sum()) for row in sorted(found)], device=trainer.device)


def answer_groups(answers: Sequence[tuple[Sequence[int], Sequence[Sequence[int]]]]) -> list[Group]:
    """Prompts with their answers, as token ids; the answers' rows are counted through."""
    rows = count()
    return [Group(prompt, own, [next(rows) for _ in own]) for prompt, own in answers]


def batches(lines: Sequence[T], config: LessonConfig, seed: int) -> list[list[T]]:
    """Every line once an epoch, shuffled anew, in steps of at most `batch_size` lines, equal but for one line."""
    chance = random.Random(seed)
    found: list[list[T]] = []
    for _ in range(config.epochs if lines else 0):
        order = chance.sample(list(lines), len(lines))
        steps = -(-len(order) // config.batch_size)
        found += [order[step::steps] for step in range(steps)]
    return found
