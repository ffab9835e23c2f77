"""The trainer: a policy, its master weights, and what one round or one lesson does to them."""

import math
import shutil
import time
from collections import defaultdict
from collections.abc import Callable, Sequence
from pathlib import Path

import torch
from torch import Tensor
from torch.nn.utils.rnn import pad_sequence

from conf.schema import TrainerConfig
from models import lora
from models.checkpoint import CARD
from models.grpo import grpo_loss, loss_denominator
from models.logprobs import token_logprobs
from models.master_weights import MasterWeights
from models.packing import Group, Pack, hidden_states, pack, split
from models.policy import load_model
from models.rollout import Rollout

NON_FINITE_LIMIT = 3  # steps in a row
WEIGHTS = (".safetensors", ".bin", ".pt", ".pth", ".gguf")  # files that are not copied to a new checkpoint

# A microbatch's loss: (log-probabilities [tokens], the pack they belong to, entropies) → (loss, sums to report)
MicrobatchLoss = Callable[[Tensor, Pack, Tensor], tuple[Tensor, dict[str, float]]]


class NonFiniteError(Exception):
    """Loss or gradients were not finite three steps in a row."""


class Trainer:
    """Updates a checkpoint's weights from graded rollouts (GRPO) or from worked answers (distillation)."""

    dtype = torch.bfloat16  # what the model computes in; the master weights are fp32

    def __init__(self, checkpoint: Path, config: TrainerConfig, reference: Path | None = None) -> None:
        self.config = config
        cuda = torch.cuda.is_available() if config.device == "auto" else config.device == "cuda"
        self.device = torch.device("cuda" if cuda else "cpu")
        torch.manual_seed(config.seed)
        self.checkpoint = checkpoint
        trusted = config.trust_remote_code
        self.model = load_model(checkpoint, self.dtype, self.device, trusted)
        if config.lora is not None:
            lora.attach(self.model, config.lora)
        self.model.eval()  # no dropout, the adapters' included: the policy that is trained is the one that was sampled
        self.reference = None
        if config.grpo.kl_coefficient > 0:
            self.reference = load_model(reference or checkpoint, self.dtype, self.device, trusted).requires_grad_(False)
        self.weights = MasterWeights(self.model, config.optimizer)
        self.non_finite = 0

    @classmethod
    def load(
        cls, checkpoint: Path, config: TrainerConfig, state: Path | None = None, reference: Path | None = None
    ) -> "Trainer":
        """The trainer of a checkpoint, fresh or, with `state`, exactly where `save` left it.

        `reference` is the checkpoint before round 1; it is loaded only where the KL coefficient is not 0. With
        adapters and a state, `checkpoint` is the night's base: the state holds the adapters.
        """
        trainer = cls(checkpoint, config, reference)
        if state is not None:
            trainer.weights.load(state)
        return trainer

    @property
    def step(self) -> int:
        """Optimizer steps taken so far."""
        return self.weights.step_count

    def update(
        self, rollouts: Sequence[Rollout], advantages: Sequence[float] | Sequence[Sequence[float]]
    ) -> dict[str, float]:
        """One round of GRPO: `steps_per_round` optimizer steps on equal shares of the groups.

        `advantages`: one a rollout, or one a token; NaN means not graded, and the rollout is left out. A group whose
        advantages are all 0 is not useful; without a KL term it is left out as well, from the denominator too. Fewer
        useful groups than `min_useful_groups`: no step (`skipped` is 1). Raises NonFiniteError after three bad steps in
        a row.
        """
        started = time.perf_counter()
        rows = [self._advantages(a, rollout) for a, rollout in zip(advantages, rollouts, strict=True)]
        groups = self._trained(rollouts, rows)
        useful = sum(any(bool(rows[row].any()) for row in group.rows) for group in groups)
        metrics = {"groups": float(len({(r.problem_id, r.group) for r in rollouts})), "useful_groups": float(useful)}
        if useful < self.config.grpo.min_useful_groups:
            return metrics | {"skipped": 1.0, "seconds": time.perf_counter() - started}
        steps = min(self.config.grpo.steps_per_round, len(groups))
        old = self._old_logprobs(groups) if steps > 1 else {}
        sums: dict[str, float] = defaultdict(float)
        for share in range(steps):
            self._grpo_step(groups[share::steps], rollouts, rows, old, sums)
        means = _means(sums, steps)
        return metrics | means | {"skipped": 0.0, "seconds": time.perf_counter() - started}

    def imitate(self, examples: Sequence[tuple[Sequence[int], Sequence[int]]]) -> dict[str, float]:
        """One supervised step on (prompt, answer) token ids: cross-entropy over the answers' tokens only."""
        groups = [Group(prompt, [answer], [row]) for row, (prompt, answer) in enumerate(examples)]
        tokens = sum(len(answer) for _, answer in examples)

        def loss(logprobs: Tensor, packed: Pack, entropies: Tensor) -> tuple[Tensor, dict[str, float]]:
            return -logprobs.sum() / tokens, {}

        sums: dict[str, float] = defaultdict(float)
        self._optimizer_step(groups, loss, sums)
        return {"loss": sums["loss"], "grad_norm": sums["grad_norm"], "tokens": float(tokens)}

    def save(self, checkpoint: Path, state: Path) -> None:
        """Writes the weights as a Hugging Face folder (bf16) and everything needed to go on exactly from here."""
        self.save_checkpoint(checkpoint)
        self.weights.save(state)

    def save_checkpoint(self, checkpoint: Path) -> None:
        """Writes the weights as a Hugging Face folder; tokenizer and template are the loaded checkpoint's own files."""
        checkpoint.mkdir(parents=True, exist_ok=True)
        for file in self.checkpoint.iterdir():
            weights = file.suffix in WEIGHTS or file.name.endswith(".index.json")
            if file.is_file() and not weights and file.name != CARD:
                shutil.copy(file, checkpoint / file.name)
        merged = lora.merged_weights(self.model) if self.config.lora is not None else None
        self.model.save_pretrained(checkpoint, state_dict=merged)

    def _trained(self, rollouts: Sequence[Rollout], advantages: Sequence[Tensor]) -> list[Group]:
        """The groups that take part, without the completions that were not graded or are to be left out."""
        members: dict[tuple[str, int], list[int]] = defaultdict(list)
        for row, (rollout, advantage) in enumerate(zip(rollouts, advantages, strict=True)):
            cut = rollout.finish_reason == "length" and self.config.grpo.overlong == "mask"
            if any(rollout.loss_mask) and not cut and not advantage.isnan().any():
                members[rollout.problem_id, rollout.group].append(row)
        keep_all = self.config.grpo.kl_coefficient > 0
        return [
            Group(rollouts[rows[0]].prompt_token_ids, [rollouts[row].token_ids for row in rows], rows)
            for rows in members.values()
            if keep_all or any(bool(advantages[row].any()) for row in rows)
        ]

    def _grpo_step(
        self,
        groups: Sequence[Group],
        rollouts: Sequence[Rollout],
        advantages: Sequence[Tensor],
        old: dict[int, Tensor],
        sums: dict[str, float],
    ) -> None:
        lengths = [sum(rollouts[row].loss_mask) for group in groups for row in group.rows]
        denominator = loss_denominator(lengths, self.config.grpo)

        def loss(logprobs: Tensor, packed: Pack, entropies: Tensor) -> tuple[Tensor, dict[str, float]]:
            policy = _rows(logprobs, packed)
            before = pad_sequence([old[row] for row in packed.rows], True) if old else policy.detach()
            mask = pad_sequence([self._tensor(rollouts[row].loss_mask).bool() for row in packed.rows], True)
            total, metrics = grpo_loss(
                policy,
                before,
                _advantage_rows([advantages[row] for row in packed.rows], packed.lengths),
                mask,
                config=self.config.grpo,
                denominator=denominator,
                sampler_logprobs=pad_sequence([self._tensor(rollouts[r].sampler_logprobs) for r in packed.rows], True),
                ref_logprobs=self._reference_rows(packed),
            )
            return total, metrics | {"entropy": float(_rows(entropies, packed)[mask].sum())}

        self._optimizer_step(groups, loss, sums)

    def _optimizer_step(self, groups: Sequence[Group], loss: MicrobatchLoss, sums: dict[str, float]) -> None:
        """Forward and backward over all microbatches, then one step; adds what there is to report to `sums`."""
        self.weights.discard()  # what a step left that broke off
        finite = True
        for batch in split(groups, self.config.microbatch_tokens):
            packed = pack(batch, self.dtype, self.device)
            logprobs, entropies = self._logprobs(self.model, packed)
            total, metrics = loss(logprobs, packed, entropies)
            total.backward()
            finite &= bool(total.isfinite())
            sums["loss"] += float(total.detach())
            for name, value in metrics.items():
                sums[name] = max(sums[name], value) if name.endswith("_max") else sums[name] + value
        norm = self.weights.step() if finite else math.nan
        sums["grad_norm"] += norm
        self.non_finite = 0 if math.isfinite(norm) else self.non_finite + 1
        sums["non_finite_steps"] += float(self.non_finite > 0)
        if self.non_finite >= NON_FINITE_LIMIT:
            raise NonFiniteError(
                f"the gradients were not finite in {NON_FINITE_LIMIT} steps in a row, after step {self.step}: "
                "lower optimizer.learning_rate, or look at the rollouts of this round"
            )

    def _logprobs(self, model: torch.nn.Module, packed: Pack) -> tuple[Tensor, Tensor]:
        hidden = hidden_states(model, packed)  # pyright: ignore[reportArgumentType]
        return token_logprobs(hidden, model.get_output_embeddings().weight, packed.targets)  # pyright: ignore

    @torch.no_grad()
    def _old_logprobs(self, groups: Sequence[Group]) -> dict[int, Tensor]:
        """The policy's log-probabilities before the round's first step, by row."""
        old: dict[int, Tensor] = {}
        for batch in split(groups, self.config.microbatch_tokens):
            packed = pack(batch, self.dtype, self.device)
            logprobs, _ = self._logprobs(self.model, packed)
            old |= dict(zip(packed.rows, logprobs.split(packed.lengths), strict=True))
        return old

    @torch.no_grad()
    def _reference_rows(self, packed: Pack) -> Tensor | None:
        if self.reference is None:
            return None
        return _rows(self._logprobs(self.reference, packed)[0], packed)

    def _advantages(self, advantage: float | Sequence[float], rollout: Rollout) -> Tensor:
        """[T]: an advantage for each of a completion's tokens, 0 for those that the policy did not write."""
        given = torch.as_tensor(advantage, dtype=torch.float32, device=self.device)
        return given.where(self._tensor(rollout.loss_mask).bool(), 0.0)

    def _tensor(self, values: Sequence[float] | Sequence[bool]) -> Tensor:
        return torch.tensor(values, dtype=torch.float32, device=self.device)


def _rows(flat: Tensor, packed: Pack) -> Tensor:
    """[tokens] → [B, T], padded with 0."""
    return pad_sequence(list(flat.split(packed.lengths)), batch_first=True)


def _advantage_rows(advantages: Sequence[Tensor], lengths: Sequence[int]) -> Tensor:
    """[B, T] from one advantage a completion or one a token."""
    expanded = [a.expand(length) for a, length in zip(advantages, lengths, strict=True)]
    return pad_sequence(expanded, batch_first=True)


def _means(sums: dict[str, float], steps: int) -> dict[str, float]:
    """What a round reports, from the sums over its tokens, sequences and steps."""
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
