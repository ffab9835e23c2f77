"""The sampler: vLLM inside this process, on the CPU or on a GPU."""

import hashlib
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import torch
from safetensors import safe_open
from vllm import LLM, SamplingParams

from conf.schema import EngineConfig
from models.rollout import Rollout

ATTEMPTS = 3  # for completions that end neither by themselves nor by their length


class SyncError(Exception):
    """The engine does not hold the weights that it was told to load."""


class Sampler:
    """Holds one engine for the whole night; new weights are loaded in place."""

    def __init__(self, checkpoint: Path, config: EngineConfig, *, trust_remote_code: bool = False) -> None:
        self.config = config
        cuda = torch.cuda.is_available()
        self.llm = LLM(
            model=str(checkpoint),
            dtype="bfloat16",
            max_model_len=config.max_model_len,
            max_num_seqs=config.max_num_seqs,
            enforce_eager=not cuda,
            enable_sleep_mode=cuda,
            gpu_memory_utilization=config.gpu_memory_share,
            generation_config="vllm",
            trust_remote_code=trust_remote_code,
            seed=0,
        )
        self.digest = checkpoint.name

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
        first. A completion that ends for another reason than its end token or its length is sampled again.
        """
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
            for index, output in zip(missing, self.llm.generate(requests, params, use_tqdm=False), strict=True):
                for completion in output.outputs:
                    if completion.finish_reason in ("stop", "length"):
                        found[index].append(self._rollout(index, len(found[index]), prompts[index], completion))
        raise RuntimeError(f"vLLM did not finish {sum(size - len(f) for f in found)} completions in {ATTEMPTS} tries")

    def load_weights(self, checkpoint: Path) -> None:
        """Loads another checkpoint's weights in place. Raises SyncError unless they are seen in the engine's memory.

        Compared are the tensors that the engine keeps as they are in the file: on the CPU embeddings and norms (it
        repacks the linear weights), on a GPU all that are not fused.
        """
        self.llm.collective_rpc("reload_weights", kwargs={"weights_path": str(checkpoint)})
        self.llm.reset_prefix_cache()
        held = self.llm.apply_model(_readable_digests)[0]
        expected = _file_digests(checkpoint, held.keys())
        wrong = sorted(name for name, digest in expected.items() if held[name] != digest)
        if wrong or not expected:
            raise SyncError(f"{checkpoint.name}: the engine holds other values than the file for {', '.join(wrong)}")
        self.digest = checkpoint.name

    def sleep(self) -> None:
        """Gives the GPU to the trainer: the weights go to the host's memory, the key/value cache is dropped."""
        if torch.cuda.is_available():
            self.llm.sleep(level=1)

    def wake(self) -> None:
        """Takes the GPU back after `sleep`."""
        if torch.cuda.is_available():
            self.llm.wake_up()

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


def _params(count: int, temperature: float, max_tokens: int) -> SamplingParams:
    return SamplingParams(n=count, temperature=temperature, top_p=1.0, top_k=0, max_tokens=max_tokens, logprobs=0)


def _readable_digests(model: torch.nn.Module) -> dict[str, str]:
    """The digests of the tensors that the engine holds unchanged in shape; runs inside the engine."""
    return {name: _digest(tensor) for name, tensor in model.named_parameters() if tensor.numel()}


def _file_digests(checkpoint: Path, names: Any) -> dict[str, str]:
    digests = {}
    for file in sorted(checkpoint.glob("*.safetensors")):
        with safe_open(file, framework="pt") as tensors:
            digests |= {name: _digest(tensors.get_tensor(name)) for name in tensors.keys() if name in names}  # noqa: SIM118
    return digests


def _digest(tensor: torch.Tensor) -> str:
    return hashlib.sha256(tensor.detach().cpu().contiguous().view(torch.uint8).numpy().tobytes()).hexdigest()
