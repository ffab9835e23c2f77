"""The sampler: vLLM inside this process, on the CPU or on a GPU."""

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NoReturn, get_args

import torch
from safetensors import safe_open
from vllm import LLM, SamplingParams
from vllm.config.lora import MaxLoRARanks
from vllm.lora.request import LoRARequest

from conf.schema import EngineConfig, LoraConfig
from conf.storage.home import NightError
from models.checkpoint import base_of, same_weights, wrong_precisions
from models.engine import cpu_lora, weight_sync
from models.engine.environment import CPU_BLOCK
from models.engine.sync_probe import TOLERANCE, VISIBLE, Probe, SyncError, read_probe
from models.hf.hardware import compute_dtype
from models.rollout import Rollout

ATTEMPTS = 3  # for completions that end neither by themselves nor by their length


class Sampler:
    """Holds one engine for the whole night; new weights, or adapters beside the weights, are loaded in place."""

    def __init__(self, checkpoint: Path, config: EngineConfig, *, trust_remote_code: bool = False) -> None:
        self.config = config
        cuda = torch.cuda.is_available()
        whole = compute_dtype(torch.device("cuda" if cuda else "cpu")) == torch.float32
        base = base_of(checkpoint)
        adapters = {} if config.lora is None else adapter_arguments(config.lora, base)
        if not cuda:
            cpu_lora.install()
        self.llm = LLM(
            model=str(base),
            dtype="float32" if whole else "bfloat16",
            load_format="safetensors",  # other files can run code when they are loaded
            max_model_len=config.max_model_len,
            max_num_seqs=config.max_num_seqs,
            block_size=None if cuda else CPU_BLOCK,
            enforce_eager=not cuda,
            enable_sleep_mode=cuda,
            gpu_memory_utilization=config.gpu_memory_share,
            generation_config="vllm",
            trust_remote_code=trust_remote_code,
            seed=0,
            **adapters,
        )
        self._base: Path | None = base  # whose weights the engine holds; None: not proven
        self._held: Path | None = None  # the checkpoint that is proven to be in the engine
        self._adapter: LoRARequest | None = None
        self._adapters = 0  # how many were served: each has a number of its own
        self.probe_difference = 0.0  # nats a token between the trainer and the engine, at the last sync with a probe
        self.load_weights(checkpoint)

    @property
    def digest(self) -> str:
        """The digest of the checkpoint that is proven to be in the engine; empty where none is."""
        return self._held.name if self._held else ""

    def sample(
        self,
        prompts: Sequence[list[int]],
        size: int,
        *,
        seed: int,
        temperature: float = 1.0,
        max_tokens: int | Sequence[int],
    ) -> list[list[Rollout]]:
        """`size` completions for each prompt: the tokens, their log-probabilities and the text.

        `prompts`: token ids. `max_tokens`: for all prompts, or one for each. Temperature 0 is greedy. The same seed,
        prompts and weights give the same completions, in a restarted engine too: random state and caches are reset
        first. A completion that ends for another reason than its end token or its length is sampled again. Raises
        NightError, before anything is sampled, where a prompt is empty or leaves no room for a single token.
        """
        _check_room(prompts, self.config.max_model_len)
        limits = [max_tokens] * len(prompts) if isinstance(max_tokens, int) else list(max_tokens)
        torch.manual_seed(seed)
        self.llm.reset_prefix_cache()
        found: list[list[Rollout]] = [[] for _ in prompts]
        for _ in range(ATTEMPTS):
            missing = [index for index, rollouts in enumerate(found) if len(rollouts) < size]
            if not missing:
                return found
            requests: Any = [{"prompt_token_ids": prompts[index]} for index in missing]
            params = [_params(size - len(found[index]), temperature, limits[index]) for index in missing]
            for index, output in zip(missing, self._generate(requests, params), strict=True):
                for completion in output.outputs:
                    if completion.finish_reason in ("stop", "length"):
                        found[index].append(self._rollout(index, len(found[index]), prompts[index], completion))
        raise RuntimeError(f"vLLM did not finish {sum(size - len(f) for f in found)} completions in {ATTEMPTS} tries")

    def load_weights(self, checkpoint: Path) -> None:
        """Loads another checkpoint in place: an adapter beside its base's weights. Raises SyncError unless it arrived.

        Three proofs: vLLM's loader filled every parameter; what can be read back of the engine's memory is what the
        files hold; and the probe's log-probabilities are the trainer's, and not still those from before. A checkpoint
        without a probe (somebody else made it) has the first two. After an error the engine holds nothing that may be
        sampled from; the next call loads everything anew.
        """
        base, probe = base_of(checkpoint), read_probe(checkpoint)
        held, loaded = self._held, self._base
        before = self._logprobs(probe) if probe and held else []
        self._held = self._base = None
        if probe and base == checkpoint and (wrong := wrong_precisions(checkpoint)):
            _fail(checkpoint, f"its file is of a wrong precision: {_listed(wrong)}")
        if base != loaded:
            self._load_base(base)
        self._serve(checkpoint if base != checkpoint else None)
        self.llm.reset_prefix_cache()
        if probe:
            self._prove(checkpoint, probe, before, held)
        self._base, self._held = base, checkpoint

    def _load_base(self, base: Path) -> None:
        try:
            (lacking,) = self.llm.collective_rpc(weight_sync.reload, args=(str(base),))
        except Exception as error:  # whatever vLLM comes up with
            _fail(base, f"vLLM could not load it ({type(error).__name__}: {' '.join(str(error).split())[:200]})")
        if lacking:
            _fail(base, f"its file has nothing for {_listed(lacking)}")
        ((wrong, compared),) = self.llm.collective_rpc(weight_sync.differing, args=(str(base),))
        if wrong or not compared:
            _fail(base, f"the engine holds other values than the file for {_listed(wrong) or 'every tensor'}")

    def _serve(self, adapter: Path | None) -> None:
        """Loads an adapter beside the base's weights, to be sampled with from now on; None: the base alone."""
        self._adapter = None
        if adapter is None:
            return
        self._adapters += 1
        self._adapter = LoRARequest(adapter.name, self._adapters, str(adapter))
        self.llm.llm_engine.add_lora(self._adapter)
        stated = json.loads((adapter / "adapter_config.json").read_text())
        arguments = (str(adapter), stated["lora_alpha"] / stated["r"])
        ((wrong, compared),) = self.llm.collective_rpc(weight_sync.differing_adapter, args=arguments)
        if wrong or not compared:
            _fail(adapter, f"the engine holds other values than the file for {_listed(wrong) or 'every matrix'}")

    def _prove(self, checkpoint: Path, probe: Probe, before: Sequence[float], held: Path | None) -> None:
        """By the probe: against the trainer's values, and against the engine's own from before the sync."""
        after = self._logprobs(probe)
        self.probe_difference = probe.difference(after)
        if not self.probe_difference <= TOLERANCE:
            far = f"{self.probe_difference:.3f} nats a token"
            _fail(checkpoint, f"the probe's log-probabilities are {far} from the trainer's")
        if after == before and held is not None and _moved(held, checkpoint, probe):
            _fail(checkpoint, f"the engine still computes what {held.name} does")

    def _logprobs(self, probe: Probe) -> list[float]:
        """The engine's log-probabilities of the probe's tokens, of as many as its context takes."""
        token_ids = probe.token_ids[: self.config.max_model_len - 1]
        params = SamplingParams(temperature=0.0, max_tokens=1, prompt_logprobs=0)
        requests: Any = [{"prompt_token_ids": token_ids}]
        (output,) = self._generate(requests, params)
        steps: Any = output.prompt_logprobs
        return [step[token].logprob for step, token in zip(steps[1:], token_ids[1:], strict=True)]

    def sleep(self) -> None:
        """Gives the GPU to the trainer: the weights go to the host's memory, the key/value cache is dropped."""
        if torch.cuda.is_available():
            self.llm.sleep(level=1)

    def wake(self) -> None:
        """Takes the GPU back after `sleep`."""
        if torch.cuda.is_available():
            self.llm.wake_up()

    def _generate(self, requests: Any, params: Any) -> list[Any]:
        return self.llm.generate(requests, params, use_tqdm=False, lora_request=self._adapter)

    def _rollout(self, group: int, sample: int, prompt: list[int], completion: Any) -> Rollout:
        token_ids = list(completion.token_ids)
        logprobs = [step[token].logprob for step, token in zip(completion.logprobs, token_ids, strict=True)]
        return Rollout(
            problem_id="",
            group=group,
            sample=sample,
            prompt_token_ids=prompt,
            token_ids=token_ids,
            sampler_logprobs=logprobs,
            loss_mask=[True] * len(token_ids),
            finish_reason=completion.finish_reason,
            text=completion.text,
            policy_digest=self.digest,
        )


def _check_room(prompts: Sequence[list[int]], context: int) -> None:
    for place, prompt in enumerate(prompts):
        if not 0 < len(prompt) < context:
            raise NightError(
                f"prompt {place} has {len(prompt)} tokens, and the engine takes 1 to {context - 1} and answers them: "
                "raise engine.max_model_len, or leave the problem out"
            )


def _params(count: int, temperature: float, max_tokens: int) -> SamplingParams:
    return SamplingParams(n=count, temperature=temperature, top_p=1.0, top_k=0, max_tokens=max_tokens, logprobs=0)


def adapter_arguments(config: LoraConfig, base: Path) -> dict[str, Any]:
    """What to tell vLLM so that it serves one adapter at a time, of the configured rank, beside a base's weights."""
    return {
        "enable_lora": True,
        "max_loras": 1,
        "max_lora_rank": min(rank for rank in get_args(MaxLoRARanks) if rank >= config.rank),
        "lora_target_modules": _linear_layers(base) if config.targets == "all-linear" else list(config.targets),
    }


def _linear_layers(checkpoint: Path) -> list[str]:
    """The names of the linear layers in a checkpoint's blocks: matrices under a number.

    vLLM would else make room for an adapter of the head as well, which costs it more than all the others.
    """
    found = set()
    for file in checkpoint.glob("*.safetensors"):
        with safe_open(file, framework="pt") as tensors:
            for name in tensors.keys():  # noqa: SIM118
                *path, module, _ = name.split(".")
                if any(part.isdecimal() for part in path) and len(tensors.get_slice(name).get_shape()) == 2:
                    found.add(module)
    return sorted(found)


def _moved(held: Path, checkpoint: Path, probe: Probe) -> bool:
    """Whether the engine's values must differ between two checkpoints.

    An update so small that the trainer itself computes the same may leave the engine's values, too, and so may an
    adapter that is still all but nothing beside its base.
    """
    if (base_of(held) == held) != (base_of(checkpoint) == checkpoint) or not held.is_dir():
        return False
    earlier = read_probe(held)
    visible = earlier is not None and earlier.difference(probe.logprobs) > VISIBLE
    return visible and not same_weights(held, checkpoint)


def _listed(names: Sequence[str]) -> str:
    return ", ".join(names[:3]) + (f" and {len(names) - 3} more" if len(names) > 3 else "")


def _fail(checkpoint: Path, what: str) -> NoReturn:
    raise SyncError(
        f"{checkpoint.name} is not what the engine samples from: {what}; the same command loads it anew, "
        f"and if that fails again, --fresh makes it anew"
    )
