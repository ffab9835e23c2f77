"""A new student: a small Llama with random weights, and a tokenizer trained on its texts."""

from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tokenizers import Tokenizer, decoders, models, pre_tokenizers, trainers

if TYPE_CHECKING:
    from transformers import PreTrainedTokenizerFast

VOCABULARY = 2048
CONTEXT = 2048  # tokens
START, END = "<|im_start|>", "<|im_end|>"
TEMPLATE = (
    "{% for message in messages %}<|im_start|>{{ message['role'] }}\n{{ message['content'] }}<|im_end|>\n{% endfor %}"
    "{% if add_generation_prompt %}<|im_start|>assistant\n{% endif %}"
)
# layers, hidden size, size of the feed-forward layers, width of a head
SIZES = {"1M": (4, 128, 352, 32), "5M": (6, 256, 704, 64), "15M": (8, 384, 1152, 64), "49M": (13, 576, 1536, 96)}


def new_tokenizer(texts: Iterable[str]) -> "PreTrainedTokenizerFast":
    """Return a byte-level BPE tokenizer with 2,048 tokens, trained on the texts. Each digit is a token."""
    from transformers import PreTrainedTokenizerFast

    tokenizer: Any = Tokenizer(models.BPE())
    tokenizer.pre_tokenizer = pre_tokenizers.Sequence(
        [pre_tokenizers.Digits(individual_digits=True), pre_tokenizers.ByteLevel(add_prefix_space=False)]
    )
    tokenizer.decoder = decoders.ByteLevel()
    alphabet = pre_tokenizers.ByteLevel.alphabet()
    trainer: Any = trainers.BpeTrainer(
        vocab_size=VOCABULARY, special_tokens=[END, START], initial_alphabet=alphabet, show_progress=False
    )
    tokenizer.train_from_iterator(texts, trainer)
    return PreTrainedTokenizerFast(tokenizer_object=tokenizer, eos_token=END, pad_token=END, chat_template=TEMPLATE)


def new_model(size: str, tokenizer: "PreTrainedTokenizerFast", seed: int) -> Any:
    """Return a Llama with random weights of one of `SIZES`, in fp32. Embeddings are tied."""
    import torch
    from transformers import LlamaConfig, LlamaForCausalLM

    layers, hidden, intermediate, head = SIZES[size]
    end: Any = tokenizer.eos_token_id
    config = LlamaConfig(
        vocab_size=VOCABULARY,
        hidden_size=hidden,
        intermediate_size=intermediate,
        num_hidden_layers=layers,
        num_attention_heads=hidden // head,
        num_key_value_heads=hidden // head // 2,
        head_dim=head,
        max_position_embeddings=CONTEXT,
        tie_word_embeddings=True,
        bos_token_id=None,
        eos_token_id=end,
    )
    with torch.random.fork_rng():
        torch.manual_seed(seed)
        return LlamaForCausalLM(config)


def save(folder: Path, model: Any, tokenizer: "PreTrainedTokenizerFast") -> None:
    """Write model and tokenizer as a Hugging Face folder, in the precision of this machine's trainer and engine."""

    from models.hf.hardware import compute_dtype, resolve_device

    model.to(compute_dtype(resolve_device("auto"))).save_pretrained(folder)
    tokenizer.save_pretrained(folder)
