"""A round of GRPO on packed microbatches: the groups to train on, the loss of a step, and the round's metrics."""

from collections import defaultdict
from collections.abc import Callable, Sequence
from itertools import compress

import torch
from jaxtyping import Float
from torch import Tensor
from torch.nn.utils.rnn import pad_sequence

from conf.schema import GrpoConfig
from models.grpo import grpo_loss, loss_denominator
from models.packing.batches import grouped, padded_rows
from models.packing.packing import Group, Pack
from models.rollout import Rollout, by_context

# A microbatch's loss: (log-probabilities [tokens], their pack, entropies [tokens]) → (loss, sums to report)
MicrobatchLoss = Callable[[Tensor, Pack, Tensor], tuple[Tensor, dict[str, float]]]


class GrpoRound:
    """The rollouts of a GRPO round with their advantages; an episode with windows is one rollout for each of them.

    `groups` are the groups to train on. They contain no ungraded completions and, if `overlong` is "mask", no truncated
    ones. If the loss has no KL term, groups without a signal (all advantages are 0) are left out as well.
    """

    def __init__(
        self,
        rollouts: Sequence[Rollout],
        advantages: Sequence[float] | Sequence[Sequence[float]],
        config: GrpoConfig,
        device: torch.device,
    ) -> None:
        """Prepare the groups. `advantages`: one per rollout or one per token; NaN for a rollout that was not graded."""
        self.config, self.device = config, device
        self.rollouts, places = by_context(rollouts)
        self.advantages = [
            self._advantages(advantages[row], part, span)
            for part, (row, span) in zip(self.rollouts, places, strict=True)
        ]
        keep_all = config.kl_coefficient > 0
        groups = grouped(self.rollouts, filter(self._is_trained, range(len(self.rollouts))))
        self.groups = [group for group in groups if keep_all or self.has_signal(group)]

    def by_prompt(self) -> list[list[Group]]:
        """Return the groups by prompt: an episode's later contexts are groups of their own, but belong to its step."""
        found: dict[tuple[str, int], list[Group]] = defaultdict(list)
        for group in self.groups:
            first = self.rollouts[group.rows[0]]
            found[first.problem_id, first.group].append(group)
        return list(found.values())

    def has_signal(self, group: Group) -> bool:
        """Return whether a group has an advantage other than 0."""
        return any(bool(self.advantages[row].any()) for row in group.rows)

    def loss(
        self,
        groups: Sequence[Group],
        old: dict[int, Float[Tensor, "T"]],
        reference: Callable[[Pack], Float[Tensor, "B T"] | None],
    ) -> MicrobatchLoss:
        """Return the loss function for an optimizer step on these groups.

        `old`: each row's log-probabilities before the round, in nats; empty if the policy is still the same.
        `reference`: returns a pack's log-probabilities under the reference model, or None if the loss has no KL term.
        """
        denominator = self._denominator([group for group in groups if self.has_signal(group)])
        kl_denominator = self._denominator(groups)

        def loss(logprobs: Tensor, packed: Pack, entropies: Tensor) -> tuple[Tensor, dict[str, float]]:
            policy, rows = padded_rows(logprobs, packed), packed.rows
            before = pad_sequence([old[row] for row in rows], True) if old else policy.detach()
            given = [self.rollouts[row].finish_reason == "given" for row in rows]  # not sampled, so weight 1
            sampler = pad_sequence([self._sampler_logprobs(row) for row in rows], True)
            sampler = before.where(torch.tensor(given, device=self.device)[:, None], sampler)
            mask = pad_sequence([torch.ones_like(self.advantages[row]).bool() for row in rows], True)
            total, metrics = grpo_loss(
                policy,
                before,
                pad_sequence([self.advantages[row] for row in rows], True),
                mask,
                config=self.config,
                denominator=denominator,
                kl_denominator=kl_denominator,
                sampler_logprobs=sampler,
                ref_logprobs=reference(packed),
            )
            return total, metrics | {"entropy": float(padded_rows(entropies, packed)[mask].sum())}

        return loss

    def _advantages(self, advantage: float | Sequence[float], part: Rollout, span: slice) -> Float[Tensor, "T"]:
        """Return one advantage for each token that the policy wrote in a part, which is a slice of an episode."""
        written = torch.tensor(part.loss_mask, dtype=torch.bool, device=self.device)
        values = torch.as_tensor(advantage, dtype=torch.float32, device=self.device)
        return (values[span] if values.ndim else values.expand(len(written)))[written]

    def _is_trained(self, row: int) -> bool:
        rollout = self.rollouts[row]
        masked = rollout.finish_reason == "length" and self.config.overlong == "mask"
        return any(rollout.loss_mask) and not masked and not bool(self.advantages[row].isnan().any())

    def _denominator(self, groups: Sequence[Group]) -> float:
        lengths = [sum(self.rollouts[row].loss_mask) for group in groups for row in group.rows]
        return loss_denominator(lengths, self.config)

    def _sampler_logprobs(self, row: int) -> Float[Tensor, "T"]:
        """Return log μ, the sampler's log-probability in nats, of each token that the policy wrote."""
        rollout = self.rollouts[row]
        return torch.tensor([*compress(rollout.sampler_logprobs, rollout.loss_mask)], device=self.device)


def round_means(sums: defaultdict[str, float], steps: int) -> dict[str, float]:
    """Return a round's means and extremes, from totals over its microbatches (`sums`) and its optimizer `steps`."""
    tokens, sequences = sums["tokens"], sums["sequences"]
    ratio, squared = sums["sampler_ratio"], sums["sampler_ratio_squared"]
    return {
        "loss": sums["loss"] / steps,
        "grad_norm": sums["grad_norm"] / steps,
        "non_finite_steps": sums["non_finite_steps"],
        "tokens": tokens,
        "entropy": sums["entropy"] / tokens,
        "clip_share": sums["clipped"] / tokens,
        "mismatch": sums["mismatch"] / tokens,
        "mismatch_max": sums["mismatch_max"],
        "sampler_ratio": ratio / tokens,
        "sampler_ratio_max": sums["sampler_ratio_max"],
        "sampler_ratio_min": 1 / sums["sampler_inverse_ratio_max"] if sums["sampler_inverse_ratio_max"] else 0.0,
        "sampler_k3": sums["sampler_k3"] / tokens,
        "effective_sample_share": ratio**2 / (tokens * squared) if squared else 0.0,
        "masked_share": sums["masked_sequences"] / sequences,
        "kl": sums["kl"] / tokens,
    }
