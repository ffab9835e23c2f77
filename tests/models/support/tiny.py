"""Tiny random students with a tokenizer, and rollouts for them, for tests of everything that trains."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any, Literal

import torch
from tokenizers import Regex, Tokenizer, decoders, models, pre_tokenizers
from torch import Tensor
from transformers import AutoModelForCausalLM, LlamaConfig, PreTrainedModel, PreTrainedTokenizerFast, Qwen3Config

from conf.schema import GrpoConfig, LoraConfig, OptimizerConfig, TrainerConfig
from models.hf.hardware import compute_dtype
from models.packing.packing import Group
from models.rollout import Rollout

Architecture = Literal["llama", "qwen3"]
CHARACTERS = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789 .,:?!+-=<>|\n#`"
END = "<end>"
TEMPLATE = (
    "{% for message in messages %}<{{ message['role'] }}>{{ message['content'] }}\n{% endfor %}"
    "{% if add_generation_prompt %}<{{ speaker | default('assistant') }}>{% endif %}"
)
VOCABULARY = 97
SHAPE: dict[str, Any] = {
    "vocab_size": VOCABULARY,
    "hidden_size": 32,
    "intermediate_size": 48,
    "num_hidden_layers": 2,
    "num_attention_heads": 4,
    "num_key_value_heads": 2,  # grouped-query attention
    "initializer_range": 0.15,  # sharp enough for a wrong position or mask to show
    "pad_token_id": 1,
}
PRECISION = compute_dtype(torch.device("cpu"))  # of this machine's trainers and engines
LENGTHS = [[4, 1, 6], [2, 5], [7, 3, 1, 1]]  # tokens of the completions of three groups
ADVANTAGES = [1.0, -0.5, -0.5, 0.7, -0.7, 0.25, 0.25, -1.5, 1.0]  # of these


def write_tiny(
    folder: Path,
    architecture: Architecture = "llama",
    *,
    dtype: torch.dtype = torch.bfloat16,
    head_dim: int | None = None,
    context: int = 128,
) -> Path:
    """Writes a model of some 20,000 weights: a Llama with tied embeddings, or a Qwen3 with a head of its own.

    vLLM takes heads of 32 (`head_dim`) or more.
    """
    shape = SHAPE | {"max_position_embeddings": context, "bos_token_id": None, "eos_token_id": 1}
    if architecture == "llama":
        config: Any = LlamaConfig(**shape, head_dim=head_dim, tie_word_embeddings=True)
    else:
        config = Qwen3Config(**shape, head_dim=head_dim or 12, tie_word_embeddings=False)
    torch.manual_seed(1)
    AutoModelForCausalLM.from_config(config, dtype=dtype).save_pretrained(folder)
    write_tokenizer(folder)
    return folder


def write_tokenizer(folder: Path, template: bool = True) -> None:
    """Writes a tokenizer with one token a character."""
    vocabulary = {token: number for number, token in enumerate(["<unknown>", END, *CHARACTERS])}
    tokenizer = Tokenizer(models.WordLevel(vocabulary, unk_token="<unknown>"))
    tokenizer.pre_tokenizer = pre_tokenizers.Split(Regex(r"[\s\S]"), "isolated")
    tokenizer.decoder = decoders.Fuse()
    fast: Any = PreTrainedTokenizerFast(
        tokenizer_object=tokenizer, eos_token=END, pad_token=END, unk_token="<unknown>", model_max_length=128
    )
    fast.chat_template = TEMPLATE if template else None
    fast.save_pretrained(folder)


def plain_model(folder: Path, dtype: torch.dtype = torch.float32) -> PreTrainedModel:
    """The model as transformers itself computes it."""
    model: Any = AutoModelForCausalLM.from_pretrained(folder, dtype=dtype, attn_implementation="sdpa")
    return model.eval()


def plain_logprobs(model: Any, prompt: Sequence[int], completion: Sequence[int], temperature: float = 1.0) -> Tensor:
    """log π of a completion's tokens, by one forward pass over prompt and completion and a whole log-softmax."""
    logits = model(input_ids=torch.tensor([[*prompt, *completion]]), use_cache=False).logits[0].float()
    predictions = (logits[len(prompt) - 1 : -1] / temperature).log_softmax(dim=-1)
    return predictions.gather(1, torch.tensor(completion)[:, None]).squeeze(1)


def random_tokens(count: int, seed: int) -> list[int]:
    return torch.randint(2, VOCABULARY, (count,), generator=torch.Generator().manual_seed(seed)).tolist()


def random_group(prompt: int, lengths: Sequence[int], first_row: int = 0) -> Group:
    """A group of random tokens: a prompt of so many, completions of these lengths."""
    completions = [random_tokens(length, 100 * first_row + place) for place, length in enumerate(lengths)]
    return Group(random_tokens(prompt, 7 + first_row), completions, list(range(first_row, first_row + len(lengths))))


def rollout(
    prompt: list[int], completion: list[int], group: int, sample: int, *, sampler: list[float] | None = None
) -> Rollout:
    return Rollout(
        problem_id=f"problem-{group}",
        group=group,
        sample=sample,
        prompt_token_ids=prompt,
        token_ids=completion,
        sampler_logprobs=sampler or [-4.0] * len(completion),
        loss_mask=[True] * len(completion),
        finish_reason="stop",
        text="",
        policy_digest="",
    )


def sampled_groups(folder: Path, lengths: Sequence[Sequence[int]], seed: int = 0) -> list[Rollout]:
    """Groups of random completions of these lengths, with the log-probabilities that the checkpoint gives them."""
    model = plain_model(folder)
    found = []
    for group, sizes in enumerate(lengths):
        prompt = random_tokens(3 + 2 * group, seed + 1000 * group)
        for sample, size in enumerate(sizes):
            completion = random_tokens(size, seed + 1000 * group + sample + 1)
            with torch.no_grad():
                sampler = plain_logprobs(model, prompt, completion).tolist()
            found.append(rollout(prompt, completion, group, sample, sampler=sampler))
    return found


def trainer_config(
    *, lora: LoraConfig | None = None, microbatch_tokens: int = 2048, learning_rate: float = 1e-3, **grpo: Any
) -> TrainerConfig:
    """A trainer on the CPU without warm-up; further arguments go to the GRPO section."""
    return TrainerConfig(
        grpo=GrpoConfig(**grpo),
        optimizer=OptimizerConfig(learning_rate=learning_rate, warmup_steps=0),
        lora=lora,
        microbatch_tokens=microbatch_tokens,
        device="cpu",
    )


def write_teacher(folder: Path) -> Path:
    """Write a model of the tiny student's shape and tokenizer, with other weights."""
    write_tiny(folder)
    model: Any = plain_model(folder, torch.bfloat16)
    torch.manual_seed(7)
    with torch.no_grad():
        for weights in model.parameters():
            weights.add_(torch.randn_like(weights) * 0.15)
    model.save_pretrained(folder)
    return folder
