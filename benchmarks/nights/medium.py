"""The *medium* round: 4 prompts of 106 tokens × 8 completions of exactly 128, for the night and for TRL."""

import json
import shutil
from pathlib import Path

from conf.schema import StudentConfig
from models.hf.loading import load_tokenizer, prompt_tokens
from rewards.gsm8k import Gsm8k
from rewards.verifier import Problem

PROMPTS, GROUP, PROMPT_TOKENS, COMPLETION_TOKENS = 4, 8, 106, 128
END = "<jupyter_script>"  # a token that the starter never writes
STUDENT = StudentConfig(system="")

# The starter rambles about these questions for 128 tokens. Every second answer has a number, which earns the reward for
# the format, and some have the one given here. So nearly every group of 8 has better and worse answers to learn from.
QUESTIONS = (
    ("How many seasons does a year have? Describe each of them in one sentence.", 2),
    ("Write a numbered list of things to do on a rainy day at home. How many things are on your list?", 3),
    ("Count the legs of a dog, a hen and a spider. Which of them has the most legs?", 1),
    ("Name the planets of the solar system one after the other. How many are there?", 2),
    ("Tell the story of a small cat who finds a ball. How old is the cat?", 1),
    ("Explain how to boil an egg. How many minutes does it take?", 3),
    ("What is 8 / 2? Explain it with a story about friends and sweets.", 2),
    ("How many wheels do a car and a bicycle have together?", 1),
    ("How many hours should a child sleep at night? Explain why sleep is good.", 2),
)
FILLING = (
    "Take the time that you need, and please tell all of it in full sentences, calmly and in a friendly way. Begin "
    "with what you know for sure, then go on to what you think, and say why. It is for a child who likes to listen, "
    "and who will ask you about it in the evening, so leave out the hard words."
)


def endless_student(student: Path, folder: Path) -> Path:
    """Return a copy of the starter that never ends a completion, because it never samples its end token."""
    if not (folder / "config.json").exists():
        shutil.copytree(student, folder)
        end = load_tokenizer(student).convert_tokens_to_ids(END)
        _change(folder / "tokenizer_config.json", eos_token=END)
        _change(folder / "generation_config.json", eos_token_id=end)
        _change(folder / "config.json", eos_token_id=end)
    return folder


def write_problems(student: Path, folder: Path) -> list[list[dict[str, str]]]:
    """Write the problems in GSM8K's format, and return them as conversations: prompts of 106 tokens."""
    rows = [{"question": _filled(student, question), "answer": f"#### {truth}"} for question, truth in QUESTIONS]
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "train.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    return [_messages(row["question"]) for row in rows]


def overrides(student: Path, problems: Path) -> list[str]:
    """Return the overrides that give the starter night medium rounds.

    The learning rate is so small that the solve rates stay the same. It does not affect the time that a round takes.
    """
    return [
        f"student.source={student}",
        f"benchmarks=[{{name: gsm8k, source: '{problems}', lenient: true}}]",
        "day={generated_traces: 0, generated_preferences: 0}",
        "reward.format=1.0",
        "distill.steps=0",
        f"grpo.prompts_per_round={PROMPTS}",
        f"grpo.group_size={GROUP}",
        f"grpo.max_completion_tokens={COMPLETION_TOKENS}",
        "grpo.exploration=1.0",
        "grpo.refills=0",
        "grpo.steps_per_round=1",  # as in TRL
        "optimizer.learning_rate=1.0e-6",
    ]


def _filled(student: Path, question: str) -> str:
    """Return the question, preceded by as many words of `FILLING` as fit into a prompt of 106 tokens."""
    words = FILLING.split()
    for count in range(len(words), -1, -1):
        filled = " ".join([*words[:count], question])
        if len(prompt_tokens(load_tokenizer(student), _messages(filled), STUDENT)) <= PROMPT_TOKENS:
            return filled
    raise ValueError(f"longer than {PROMPT_TOKENS} tokens: {question}")


def _messages(question: str) -> list[dict[str, str]]:
    return [{"role": "user", "content": Gsm8k().prompt(Problem("", "gsm8k", question, ""))}]


def _change(file: Path, **values: object) -> None:
    file.write_text(json.dumps(json.loads(file.read_text()) | values, indent=2))
