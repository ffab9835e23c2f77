"""The sampler: vLLM inside this process, on the CPU or on a GPU."""

import json
import random
from collections.abc import Generator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NoReturn
from uuid import uuid4

import torch
from vllm import LLM, SamplingParams
from vllm.lora.request import LoRARequest
from vllm.sampling_params import RequestOutputKind

from conf.schema import EngineConfig
from conf.storage.home import NightError
from models.engine import cpu_lora, weight_sync
from models.engine.adapters import adapter_arguments
from models.engine.environment import CPU_BLOCK, gpu_share
from models.engine.sync_probe import Probe, SyncError, must_differ, read_probe, tolerance
from models.hf.checkpoint import base_of, wrong_precisions
from models.hf.hardware import GIB, compute_dtype, resolve_device
from models.hf.loading import answer_text
from models.rollout import Rollout

# For answers that people read. `min_p`: how likely a token must be, relative to the likeliest one (arXiv 2407.01082).
# `repetition_penalty` divides the positive logits of tokens that were there before, and multiplies the negative ones
# (CTRL, arXiv 1909.05858, section 4.1): without it, a small model soon repeats its earlier answers in a chat.
READABLE: dict[str, Any] = {"min_p": 0.1, "repetition_penalty": 1.05, "output_kind": RequestOutputKind.DELTA}


@dataclass(frozen=True)
class Piece:
    """The text that an engine step adds to answer number `answer`. `finish`: `stop` or `length` at its end, or None."""

    answer: int
    text: str
    finish: str | None


class Sampler:
    """Runs one vLLM engine for the whole night, and loads new weights and adapters into it in place."""

    def __init__(self, checkpoint: Path, config: EngineConfig, *, trust_remote_code: bool = False) -> None:
        self.config = config
        device = resolve_device("auto")
        self._cuda = cuda = device.type == "cuda"
        base = base_of(checkpoint)
        adapters = {} if config.lora is None else adapter_arguments(config.lora, base)
        if not cuda:
            cpu_lora.install()
            cpu_lora.skip_token_ranks()
        self.llm = LLM(
            model=str(base),
            dtype="float32" if compute_dtype(device) == torch.float32 else "bfloat16",
            load_format="safetensors",  # loading other formats can run code
            use_tqdm_on_load=False,
            max_model_len=config.max_model_len,
            max_num_seqs=config.max_num_seqs,
            block_size=None if cuda else CPU_BLOCK,
            kv_cache_memory_bytes=None if cuda else int(config.kv_cache_gb * GIB),
            enforce_eager=not cuda,
            enable_sleep_mode=cuda,
            gpu_memory_utilization=gpu_share(config, base) if cuda else config.gpu_memory_share,
            generation_config="vllm",
            logprobs_mode="processed_logprobs",  # of the distribution sampled from, at its temperature
            trust_remote_code=trust_remote_code,
            seed=0,
            **adapters,
        )
        self._base: Path | None = base  # the full checkpoint in the engine; None if unverified
        self._loaded: Path | None = None  # the checkpoint or adapter verified to be in the engine
        self._adapter: LoRARequest | None = None
        self._adapters = 0  # adapters served so far; vLLM needs a unique id for each
        self._probed: list[float] = []  # the engine's log-probabilities of the loaded probe; empty without one
        self._asleep = False
        self._first_difference: float | None = None  # nats per token, of the first checkpoint with a probe
        self.probe_difference = 0.0  # nats per token between trainer and engine, at the last sync with a probe
        self.load_weights(checkpoint)

    @property
    def digest(self) -> str:
        """The digest of the checkpoint that the engine is verified to hold; empty if there is none."""
        return self._loaded.name if self._loaded else ""

    def sample(
        self,
        prompts: Sequence[list[int]],
        size: int,
        *,
        seed: int,
        temperature: float = 1.0,
        max_tokens: int | Sequence[int],
        fresh: bool = True,
    ) -> list[list[Rollout]]:
        """Return `size` sampled completions for each prompt, with their tokens, log-probabilities and text.

        `prompts`: token ids. `max_tokens`: one limit for all prompts, or one per prompt. Temperature 0 is greedy. The
        same seed, prompts and weights give the same completions, even in a restarted engine: torch's random state is
        seeded and the prefix cache emptied first (on a GPU, where vLLM draws from its own random state, each request
        gets a seed). Without `fresh`, the prefix cache is kept, so a later turn of a conversation computes only its new
        tokens. Raises NightError before sampling if a prompt is empty or leaves no room for a token, and RuntimeError
        if vLLM ends a completion for another reason than its end token or its limit.
        """
        _check_room(prompts, self.config.max_model_len)
        limits = [max_tokens] * len(prompts) if isinstance(max_tokens, int) else list(max_tokens)
        torch.manual_seed(seed)
        if fresh:
            self.llm.reset_prefix_cache()
        requests: Any = [{"prompt_token_ids": prompt} for prompt in prompts]
        params = [
            SamplingParams(
                n=size,
                temperature=temperature,
                top_p=1.0,
                top_k=0,
                max_tokens=limit,
                logprobs=0,
                flat_logprobs=True,
                detokenize=False,  # decoding a whole completion is cheaper than token after token
                seed=random.Random(f"{seed} {index}").getrandbits(48) if self._cuda else None,
            )
            for index, limit in enumerate(limits)
        ]
        outputs = self.llm.generate(requests, params, use_tqdm=False, lora_request=self._adapter)
        return [
            [self._rollout(group, sample, prompts[group], each) for sample, each in enumerate(output.outputs)]
            for group, output in enumerate(outputs)
        ]

    @property
    def kv_tokens(self) -> int:
        """The capacity of the key/value cache, in tokens."""
        cache = self.llm.llm_engine.vllm_config.cache_config
        assert cache.num_gpu_blocks is not None
        return cache.num_gpu_blocks * cache.block_size

    def write(
        self, prompt: list[int], adapted: Sequence[bool], max_tokens: int, temperature: float
    ) -> Generator[list[Piece]]:
        """Yield the answers to a prompt (token ids) as the engine writes them: one list of pieces per engine step.

        `adapted`: for each answer, whether to use the adapter or the base alone. Answers are sampled with `READABLE`.
        Closing the iterator aborts unfinished ones. Raises NightError if the prompt is empty or leaves no room.
        """
        _check_room([prompt], self.config.max_model_len)
        engine: Any = self.llm.llm_engine
        params = SamplingParams(temperature=temperature, max_tokens=max_tokens, **READABLE)
        answers = {uuid4().hex: number for number in range(len(adapted))}
        try:
            for request, number in answers.items():
                adapter = self._adapter if adapted[number] else None
                engine.add_request(request, {"prompt_token_ids": prompt}, params, lora_request=adapter)
            while engine.has_unfinished_requests():
                yield [
                    Piece(answers[output.request_id], part.text, part.finish_reason)
                    for output in engine.step()
                    for part in output.outputs
                ]
        finally:
            if engine.has_unfinished_requests():
                engine.abort_request(list(answers))

    def logprobs(self, texts: Sequence[Sequence[int]]) -> list[list[float]]:
        """Return the log-probability of each token after the first in each text (token ids), in nats, at temperature 1.

        Texts that exceed the context are truncated.
        """
        fitting = [list(text[: self.config.max_model_len - 1]) for text in texts]
        params = SamplingParams(temperature=0.0, max_tokens=1, prompt_logprobs=0)
        requests: Any = [{"prompt_token_ids": text} for text in fitting]
        outputs: Any = self.llm.generate(requests, params, use_tqdm=False, lora_request=self._adapter)
        return [
            [step[token].logprob for step, token in zip(output.prompt_logprobs[1:], text[1:], strict=True)]
            for output, text in zip(outputs, fitting, strict=True)
        ]

    def use(self, checkpoint: Path) -> None:
        """Load a checkpoint, waking the engine if it is asleep. Do nothing if it is awake and holds the checkpoint.

        After sleep, weights are always reloaded, because vLLM can corrupt adapters during sleep (vLLM issue 53888). The
        key/value cache wakes up only after the weights are loaded, because memory may be too small for both until then.
        """
        if self._asleep:
            self.llm.wake_up(tags=["weights"])
        if self._asleep or self.digest != checkpoint.name:
            self.load_weights(checkpoint)

    def load_weights(self, checkpoint: Path) -> None:
        """Load a checkpoint in place (an adapter goes on top of its base's weights), and verify the result.

        Three checks follow. (1) The files have every parameter. (2) The values that can be read back from the
        engine's memory equal those in the files. (3) The probe's log-probabilities match the trainer's and, if they
        must change (see `must_differ`), have changed. vLLM itself loads the full model that a new engine starts with;
        only check 3 applies to it. A checkpoint from another program has no probe and skips check 3. With a probe, the
        files' precision is checked first. Raises SyncError if a check fails; `digest` is then empty, and the next call
        loads everything again.
        """
        base, probe = base_of(checkpoint), read_probe(checkpoint)
        previous, previous_base = self._loaded, self._base
        before, self._probed = self._probed, []
        self._loaded = self._base = None
        if probe and base == checkpoint and (wrong := wrong_precisions(checkpoint)):
            _fail(checkpoint, f"its file has the wrong precision: {_listed(wrong)}")
        if base != previous_base or self._asleep:
            self._load_base(base)
        self.use_adapter(checkpoint if base != checkpoint else None)
        if self._asleep:
            self.llm.wake_up(tags=["kv_cache"])
            self._asleep = False
        self.llm.reset_prefix_cache()
        if probe:
            self._check_probe(checkpoint, probe, before, previous)
        self._base, self._loaded = base, checkpoint

    def _load_base(self, base: Path) -> None:
        try:
            self.llm.collective_rpc(weight_sync.reload, args=(str(base),))
        except Exception as error:  # vLLM may raise anything
            _fail(base, f"vLLM could not load it ({type(error).__name__}: {' '.join(str(error).split())[:200]})")
        ((missing, wrong, compared),) = self.llm.collective_rpc(weight_sync.differing, args=(str(base),))
        if missing:
            _fail(base, f"its file has nothing for {_listed(missing)}")
        if wrong or not compared:
            _fail(base, f"the engine holds other values than the file for {_listed(wrong) or 'every tensor'}")

    def use_adapter(self, adapter: Path | None) -> None:
        """Serve an adapter on top of the base's weights (None: the base alone). Raises SyncError if loading failed.

        Adapters with different content must have different folder names.
        """
        self._adapter = None
        if adapter is None:
            return
        self._adapters += 1
        self._adapter = LoRARequest(adapter.name, self._adapters, str(adapter))
        self.llm.llm_engine.add_lora(self._adapter)
        config = json.loads((adapter / "adapter_config.json").read_text())
        arguments = (str(adapter), config["lora_alpha"] / config["r"])
        ((wrong, compared),) = self.llm.collective_rpc(weight_sync.differing_adapter, args=arguments)
        if wrong or not compared:
            _fail(adapter, f"the engine holds other values than the file for {_listed(wrong) or 'every matrix'}")

    def _check_probe(self, checkpoint: Path, probe: Probe, before: Sequence[float], previous: Path | None) -> None:
        (after,) = self.logprobs([probe.token_ids])
        self.probe_difference = probe.difference(after)
        if not self.probe_difference <= tolerance(self._first_difference):
            nats = f"{self.probe_difference:.3f} nats a token"
            _fail(checkpoint, f"the probe's log-probabilities are {nats} from the trainer's")
        if after == before and previous is not None and must_differ(previous, checkpoint, probe):
            _fail(checkpoint, f"the engine still computes what {previous.name} does")
        self._probed = after
        if self._first_difference is None:
            self._first_difference = self.probe_difference

    def sleep(self) -> None:
        """Release the GPU for the trainer: move the weights to host memory and drop the key/value cache."""
        if self._cuda:
            self.llm.sleep(level=1)
            self._asleep = True

    def _rollout(self, group: int, sample: int, prompt: list[int], completion: Any) -> Rollout:
        reason = completion.finish_reason
        if reason not in ("stop", "length"):
            raise RuntimeError(f"vLLM did not finish a completion: {reason}")
        token_ids, logprobs = [*completion.token_ids], [*completion.logprobs.logprobs]
        tokenizer: Any = self.llm.get_tokenizer()
        text, written = answer_text(tokenizer, token_ids), [True] * len(token_ids)
        return Rollout("", group, sample, prompt, token_ids, logprobs, written, reason, text, self.digest)


def _check_room(prompts: Sequence[list[int]], context: int) -> None:
    for index, prompt in enumerate(prompts):
        if not 0 < len(prompt) < context:
            raise NightError(
                f"prompt {index} has {len(prompt)} tokens, and the engine takes 1 to {context - 1}: "
                "raise engine.max_model_len, or leave the problem out"
            )


def _listed(names: Sequence[str]) -> str:
    return ", ".join(names[:3]) + (f" and {len(names) - 3} more" if len(names) > 3 else "")


def _fail(checkpoint: Path, what: str) -> NoReturn:
    raise SyncError(
        f"{checkpoint.name} is not what the engine samples from: {what}; run the same command again, "
        f"and if that fails too, start the night over with --fresh"
    )
