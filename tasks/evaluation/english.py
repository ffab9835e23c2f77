"""The English guard: a test of how well a checkpoint predicts English prose that no night trains on."""

import json
import shutil
import time
from pathlib import Path
from statistics import fmean

import numpy as np

from conf.storage.durable import read_json
from models.hf.checkpoint import digest_file
from models.hf.loading import load_tokenizer
from tasks.evaluation.statistics import signed, student_low
from tasks.evaluation.stored_answers import find_stored, new_folder, versions
from tasks.rollouts.verified import Player
from tasks.stage import Artifact
from tasks.workers import engine_process

FILE = "english.json"
PASSAGES = Path(__file__).with_name("english.txt")  # one passage per line, written for this project


def write_english(folder: Path, player: Player, exams: Path) -> None:
    """Write `english.json`: each passage's mean negative log-likelihood in nats per token, excluding the first token.

    The result is stored under `exams`, so that each checkpoint is measured only once.
    """
    inputs = {
        "checkpoint": player.checkpoint.name,
        "passages": digest_file(PASSAGES),
        "settings": json.dumps(player.config.model_dump(mode="json"), sort_keys=True),
        **versions(),
    }
    if (known := next(find_stored(exams, inputs), None)) is not None:
        shutil.copyfile(known.folder / FILE, folder / FILE)
    else:
        started = time.perf_counter()
        tokenizer = load_tokenizer(player.checkpoint, player.student.trust_remote_code)
        passages = PASSAGES.read_text(encoding="utf-8").splitlines()
        texts = [tokenizer.encode(passage, add_special_tokens=False) for passage in passages]
        logprobs = player.call(engine_process.logprobs, texts)
        (folder / FILE).write_text(json.dumps({"nats": [-fmean(tokens) for tokens in logprobs]}))
        with new_folder(exams, inputs, time.perf_counter() - started) as stored:
            shutil.copyfile(folder / FILE, stored / FILE)


def mean_nats(exam: Path) -> float | None:
    """Return the mean of the values in `english.json`, in nats per token; None if English was not measured."""
    measured = read_json(exam / FILE)
    return measured and fmean(measured["nats"])


def judge_english(before: Artifact, after: Artifact, margin: float, than: str = "") -> tuple[bool, str]:
    """Return whether the candidate passes the English guard, and a sentence that says why.

    Compares the results of two `evaluate` stages passage by passage. The candidate passes if the one-sided 95 % upper
    bound on the rise in mean negative log-likelihood per token (Student's t over the passages) is below `margin` nats.
    `than`: the model that the candidate is compared with, if not the champion.
    """
    old, new = (np.array(artifact.read_json(FILE)["nats"]) for artifact in (before, after))
    high = -student_low(old - new)
    passed = high < margin
    return passed, (
        f"Guard English prose{f' against {than}' if than else ''}: {old.mean():.2f} → {new.mean():.2f} nats a token "
        f"({signed((new - old).mean())}, upper bound {signed(high)}; allowed {signed(margin)})"
        f"{'' if passed else ': not passed'}."
    )
