"""The trainer: a policy and its master weights, updated by GRPO rounds and by lessons."""

import math
import random
import time
from collections import defaultdict
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, nullcontext
from pathlib import Path

import torch
from torch import Tensor

from conf.schema import TrainerConfig
from conf.storage.home import NightError
from conf.storage.log import log
from models.engine.sync_probe import Probe, take_probe, write_probe
from models.hf import lora
from models.hf.checkpoint import base_of, copy_companions, digest_folder, is_adapter
from models.hf.hardware import (
    compute_dtype,
    free_memory,
    is_out_of_memory,
    release_gpu_memory,
    resolve_device,
    tokens_per_pass,
)
from models.hf.loading import load_model, load_tokenizer
from models.hf.merging import prove_merge
from models.lessons.preference_data import EpisodeExample, Example
from models.optim.master_weights import MasterWeights
from models.optim.trainer_state import read_state, write_state
from models.packing.batches import logprobs_by_row, padded_rows, rollout_logprobs
from models.packing.grpo_round import GrpoRound, MicrobatchLoss, round_means
from models.packing.packing import Group, Pack, pack, split
from models.packing.passes import fewer, fit_passes
from models.packing.self_check import choose_packing
from models.rollout import Rollout
from models.transcript import contexts

NON_FINITE_LIMIT = 3  # consecutive steps


class NonFiniteError(NightError):
    """The loss or the gradients were not finite in three consecutive steps."""


class Trainer:
    """Updates a checkpoint's weights from graded rollouts (GRPO) or from examples (lessons)."""

    def __init__(self, checkpoint: Path, config: TrainerConfig, reference: Path | None = None) -> None:
        self.config = config
        self.device = resolve_device(config.device)
        self.dtype = compute_dtype(self.device)  # the model's precision; the master weights are fp32
        self.checkpoint = checkpoint
        trusted = config.trust_remote_code
        with self._drawing("adapters"):
            goes_on = config.lora is not None and config.lora.keep and is_adapter(checkpoint)
            self.model = load_model(base_of(checkpoint) if goes_on else checkpoint, self.dtype, self.device, trusted)
            self.token_logprobs = choose_packing(self.model)
            if config.lora is not None:
                lora.attach(self.model, config.lora)
            if goes_on:
                lora.load_adapter(self.model, checkpoint)
        self.model.eval()  # no dropout, so that the policy trained is the policy sampled; but see `lora.dropout`
        self.dropout = config.lora is not None and config.lora.dropout > 0
        self.reference = None
        self.reference_is_base = config.lora is not None and reference in (None, checkpoint) and not goes_on
        if config.grpo.kl_coefficient > 0 and not self.reference_is_base:
            self.reference = load_model(reference or checkpoint, self.dtype, self.device, trusted).requires_grad_(False)
            self.reference.set_attn_implementation(str(self.model.config._attn_implementation))
        self.weights = MasterWeights(self.model, config.optimizer, self._seed("rounded"))
        self.non_finite = 0
        most = tokens_per_pass(config.microbatch_tokens, self.device)
        self.tokens_per_pass = fit_passes(self.model, config.lora is not None, free_memory(self.device), most)

    @classmethod
    def load(
        cls,
        checkpoint: Path,
        config: TrainerConfig,
        state: Path | None = None,
        reference: Path | None = None,
        *,
        checkpoint_digest: str | None = None,
    ) -> "Trainer":
        """Create a trainer for a checkpoint: a fresh one or, given a `state`, one exactly as it was when saved.

        `reference`: the checkpoint towards which the KL term pulls (default: `checkpoint`). It is loaded only if the KL
        coefficient is not 0. If it is the adapters' base, the model with its adapters disabled takes its place. With
        adapters, the state contains them, and `checkpoint` is the one with which the block of rounds began.
        `checkpoint_digest`: the checkpoint that the state must belong to (default: any). Raises StateError if the state
        is damaged, or belongs to another checkpoint or to other weights.
        """
        saved = None if state is None else read_state(state, checkpoint_digest)
        trainer = cls(checkpoint, config, reference)
        if saved is not None:
            weights, note = saved
            trainer.weights.restore(weights, note["step"])
            trainer.non_finite = note["non_finite"]
        return trainer

    @property
    def step(self) -> int:
        """The number of optimizer steps taken."""
        return self.weights.step_count

    def update(
        self,
        rollouts: Sequence[Rollout],
        advantages: Sequence[float] | Sequence[Sequence[float]],
        rate_factor: float = 1.0,
    ) -> dict[str, float]:
        """Train one round of GRPO: up to `steps_per_round` optimizer steps, each on an equal share of the groups.

        `advantages`: one per rollout, or one per token. A rollout with a NaN was not graded and is left out. A group is
        useful if any of its advantages is not 0. Other groups are trained on only for the KL term, if there is one, and
        the policy term's denominator does not count them. With fewer than `min_useful_groups` useful groups, no step is
        taken (`skipped` is then 1). `rate_factor` scales the round's learning rate. A step with a non-finite loss or
        gradient is not taken; three in a row raise NonFiniteError.
        """
        started = time.perf_counter()
        graded = GrpoRound(rollouts, advantages, self.config.grpo, self.device)
        groups, prompts = graded.groups, graded.by_prompt()
        useful = sum(any(map(graded.has_signal, own)) for own in prompts)
        self.weights.rate_factor = rate_factor
        metrics = {"groups": float(len({(r.problem_id, r.group) for r in rollouts})), "useful_groups": float(useful)}
        if useful < self.config.grpo.min_useful_groups:
            return metrics | {"skipped": 1.0, "seconds": time.perf_counter() - started}
        steps = min(self.config.grpo.steps_per_round, len(prompts))
        # with dropout, π differs from the sampled policy even in the first step
        temperature = self.config.grpo.temperature
        old = self.completion_logprobs(groups, temperature) if steps > 1 or self.dropout else {}
        sums: defaultdict[str, float] = defaultdict(float)
        for share in range(steps):
            step = [group for own in prompts[share::steps] for group in own]
            self.optimizer_step(step, graded.loss(step, old, self._reference_rows), sums, temperature=temperature)
        return metrics | round_means(sums, steps) | {"skipped": 0.0, "seconds": time.perf_counter() - started}

    def logprobs(self, rollouts: Sequence[Rollout]) -> list[list[float]]:
        """Return log π of each token that the policy wrote in each rollout, in nats, without gradients."""
        return rollout_logprobs(self.model, self.token_logprobs, rollouts, self.tokens_per_pass)

    def completion_logprobs(self, groups: Sequence[Group], temperature: float = 1.0) -> dict[int, Tensor]:
        """Return log π of each completion's tokens [T] in nats, without gradients, as a dict from row to tensor."""
        return logprobs_by_row(self.model, self.token_logprobs, groups, self.tokens_per_pass, temperature)

    def imitate(self, examples: Sequence[Example | EpisodeExample]) -> dict[str, float]:
        """Take one supervised step on (prompt, answer) token ids. The loss is the answer tokens' mean cross-entropy.

        In an example with a mask (a multi-turn episode), only the marked tokens count.
        """
        groups: list[Group] = []
        for example in examples:
            mask = example.mask if isinstance(example, EpisodeExample) else [True] * len(example[1])
            windows = example.windows if isinstance(example, EpisodeExample) else ()
            for before, span in contexts(*example[:2], windows, mask):
                if span.stop > span.start:
                    groups.append(Group(before, [example[1][span]], [len(groups)], [mask[span]]))
        tokens = sum(sum(group.masks[0]) for group in groups if group.masks)

        def loss(logprobs: Tensor, packed: Pack, entropies: Tensor) -> tuple[Tensor, dict[str, float]]:
            return -logprobs.sum() / tokens, {}

        sums: dict[str, float] = defaultdict(float)
        self.optimizer_step(groups, loss, sums)
        return {"loss": sums["loss"], "grad_norm": sums["grad_norm"], "tokens": float(tokens)}

    def optimizer_step(
        self,
        groups: Sequence[Group],
        loss: MicrobatchLoss,
        sums: dict[str, float],
        *,
        dropout: bool = True,
        temperature: float = 1.0,
    ) -> None:
        """Take one step on the sum of `loss` over the groups' microbatches, and add the metrics to `sums`.

        A group may be split across microbatches, but a completion never is. `dropout=False` turns off the adapters'
        dropout, whatever the configuration says. `temperature` divides the logits before `loss` gets their
        log-probabilities. If the loss or the gradient is not finite, the step is not taken; three such steps in a row
        raise NonFiniteError. If memory runs out, the step starts again with fewer tokens a pass: without dropout, its
        result changes only by rounding. Raises NightError if not even one completion fits.
        """
        while (finite := self._accumulate(groups, loss, sums, dropout, temperature)) is None:
            release_gpu_memory()
            self.tokens_per_pass = fewer(self.model, groups, self.tokens_per_pass)
        norm = self.weights.step() if finite else math.nan
        sums["grad_norm"] += norm
        self._count(finite, norm)
        sums["non_finite_steps"] += float(self.non_finite > 0)

    def move_state(self, device: torch.device | str) -> None:
        """Move all but the policy's weights to a device: to main memory while the engine needs the GPU, and back."""
        self.weights.move(device)
        if self.reference is not None:
            self.reference.to(device)  # pyrefly: ignore[bad-argument-type]

    def _accumulate(
        self, groups: Sequence[Group], loss: MicrobatchLoss, sums: dict[str, float], dropout: bool, temperature: float
    ) -> bool | None:
        """Compute a step's gradients. Return whether the loss was finite, or None if memory ran out.

        `sums` changes only if the gradients are complete.
        """
        self.weights.discard()  # drop gradients left by a step that raised an error
        finite, added = True, dict(sums)
        try:
            with self._drawing(f"step {self.step}"), lora.dropout(self.model, on=dropout):
                for batch in split(groups, self.tokens_per_pass):
                    packed = pack(batch, self.device, temperature)
                    logprobs, entropies = self.token_logprobs(self.model, packed)
                    total, metrics = loss(logprobs, packed, entropies)
                    total.backward()
                    finite = finite and bool(total.isfinite())
                    for name, value in {"loss": float(total.detach()), **metrics}.items():
                        known = added.get(name, 0.0)
                        added[name] = max(known, value) if name.endswith("_max") else known + value
        except RuntimeError as error:
            if not is_out_of_memory(error):
                raise
            for parameter in self.model.parameters():
                parameter.grad = None
            return None
        sums.update(added)
        return finite

    @contextmanager
    def _drawing(self, purpose: str) -> Iterator[None]:
        """Seed torch's random numbers for the block; after it, the process's own continue as if it had drawn none."""
        with torch.random.fork_rng([self.device] if self.device.type == "cuda" else [], device_type="cuda"):
            torch.manual_seed(self._seed(purpose))
            yield

    def _seed(self, purpose: str) -> int:
        """Return a seed made of the config's seed, the name of the starting checkpoint (a digest), and `purpose`.

        Without the checkpoint's name, each block's adapters would begin with the same matrices.
        """
        return random.Random(f"{self.config.seed} {self.checkpoint.name} {purpose}").getrandbits(63)

    def save(self, checkpoint: Path, state: Path) -> None:
        """Write the weights as a Hugging Face folder, and the state from which training can continue exactly."""
        self.save_checkpoint(checkpoint)
        self.save_state(state, digest_folder(checkpoint))

    def save_state(self, state: Path, checkpoint: str) -> None:
        """Write the state needed to resume training. `checkpoint`: the digest of the checkpoint with these weights."""
        tensors = self.weights.tensors()
        write_state(state, tensors, checkpoint=checkpoint, step=self.step, non_finite=self.non_finite)

    def save_checkpoint(self, checkpoint: Path) -> None:
        """Write the weights and the sync probe as a Hugging Face folder, with adapters merged by stochastic rounding.

        Copies tokenizer and chat template from the loaded checkpoint. Raises MergeError if the merge is wrong.
        """
        copy_companions(self.checkpoint, checkpoint)
        if self.config.lora is None:
            self.model.save_pretrained(checkpoint)
            write_probe(checkpoint, self._probe())
        else:
            merged = lora.merged_weights(self.model, torch.Generator(self.device).manual_seed(self._seed("merged")))
            self.model.save_pretrained(checkpoint, state_dict=merged)
            prove_merge(checkpoint, self._probe(), self.config.trust_remote_code)

    def save_adapter(self, folder: Path) -> None:
        """Write only the adapters, in peft's format, with the sync probe."""
        lora.save_adapter(self.model, folder)
        write_probe(folder, self._probe())

    def _probe(self) -> Probe:
        return take_probe(load_tokenizer(self.checkpoint, self.config.trust_remote_code), self.logprobs)

    def _count(self, finite: bool, norm: float) -> None:
        if math.isfinite(norm):
            self.non_finite = 0
            return
        self.non_finite += 1
        what = f"the gradients' norm ({norm})" if finite else "the loss"
        log.warning("step %d was not taken: %s was not finite; %d in a row", self.step + 1, what, self.non_finite)
        if self.non_finite >= NON_FINITE_LIMIT:
            raise NonFiniteError(
                f"the gradients were not finite in {NON_FINITE_LIMIT} steps in a row, after step {self.step}: "
                "lower optimizer.learning_rate, or look at the rollouts of this round"
            )

    @torch.no_grad()
    def _reference_rows(self, packed: Pack) -> Tensor | None:
        if self.config.grpo.kl_coefficient == 0:
            return None
        with lora.disabled(self.model) if self.reference_is_base else nullcontext():
            return padded_rows(self.token_logprobs(self.reference or self.model, packed)[0], packed)
