"""The starter model as a folder, and a starter that was trained further, to serve as a teacher."""

import shutil
from itertools import islice
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from benchmarks.inputs.school import SCHOOL, make
from conf.load import STARTER as STARTER_NIGHT
from conf.load import load_night
from conf.sections.lessons import DistillConfig

STARTER, STUDIED, TINY = (SCHOOL / "benchmarks" / name for name in ("starter", "studied", "tiny"))
LESSONS = (DistillConfig(steps=32, learning_rate=1e-4), DistillConfig(steps=16, learning_rate=2e-5))
RECIPE = f"{LESSONS!r}, each step rounded by chance"


def starter(folder: Path = STARTER) -> Path:
    """Return the folder of a student. The starter's own is written if it is missing; another must hold a model."""
    if not (folder / "config.json").exists():
        if folder != STARTER:
            raise SystemExit(f"{folder}: no model is there (no config.json)")
        from models.hf.starter import write_starter  # torch

        make(folder.parent)
        write_starter(folder)
    return folder


def tiny_student(folder: Path = TINY) -> Path:
    """Return a folder with a random Llama of 3 million weights and the starter's tokenizer, written if missing."""
    if not (folder / "config.json").exists():
        import torch
        from transformers import AutoModelForCausalLM, LlamaConfig

        from models.hf.starter import write_starter

        make(folder.parent)
        write_starter(folder)
        size: dict[str, Any] = {"hidden_size": 64, "intermediate_size": 128, "head_dim": 32, "num_hidden_layers": 2}
        size |= {"num_attention_heads": 2, "num_key_value_heads": 2}
        config = LlamaConfig.from_pretrained(folder, **size)
        torch.manual_seed(1)
        AutoModelForCausalLM.from_config(config, dtype=torch.bfloat16).save_pretrained(folder)
    return folder


def studied() -> Path:
    """Return the folder of the starter after fine-tuning on 768 worked exercises, none of them an exam problem.

    If the folder is missing or was made by another recipe, it is made anew, which takes a few minutes on two cores.
    """
    note = STUDIED.with_suffix(".txt")
    if STUDIED.exists() and note.exists() and note.read_text() == RECIPE:
        return STUDIED
    from models.hf.loading import answer_tokens, load_tokenizer, prompt_tokens
    from models.lessons.sft_preference import imitation
    from models.trainer import Trainer
    from rewards.data.synthetic_journal import generated_lines
    from tasks.training.trainer_process import lesson_config

    night, model = load_night(STARTER_NIGHT), starter()
    tokenizer = load_tokenizer(model)
    count = sum(lesson.steps * lesson.batch_size for lesson in LESSONS)
    traces = iter(generated_lines("traces", "of the teacher", count, night.benchmarks[0].levels, "2026-01-01"))
    with TemporaryDirectory(dir=model.parent) as drafts:
        for number, lesson in enumerate(LESSONS):
            trainer = Trainer(model, lesson_config(night.trainer, lesson.learning_rate))
            chosen = list(islice(traces, lesson.steps * lesson.batch_size))
            prompts = [prompt_tokens(tokenizer, trace["messages"], night.student) for trace in chosen]
            answers = [answer_tokens(tokenizer, trace["response"]) for trace in chosen]
            examples = list(zip(prompts, answers, strict=True))
            list(imitation(trainer, examples, lesson, night.seed))
            model = Path(drafts) / str(number)
            trainer.save_checkpoint(model)
        note.unlink(missing_ok=True)
        shutil.rmtree(STUDIED, ignore_errors=True)
        model.rename(STUDIED)
        note.write_text(RECIPE)
    return STUDIED
