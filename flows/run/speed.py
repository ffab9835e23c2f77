"""Estimates how long a night's phases take here, from an earlier night's rounds or else from the CPU's matmul speed."""

import math
import time
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path
from statistics import median

from conf.load import config_of
from conf.schema import NightConfig
from conf.sections.hours import clocks_in
from conf.storage.home import Home, InputError, NightError
from conf.storage.layout import PACE_FOLDER
from flows.run.dates import Hours, date_of_night
from flows.run.estimate import FIRST_LOOK, Estimate
from flows.run.history import expected_start, finished, read_round_metrics
from flows.run.levels import joined_levels
from flows.run.machine import billions_of_parameters
from models.engine.environment import trainer_environment
from models.hf.checkpoint import parent_of
from models.lessons.pace import read_steps
from rewards.data.benchmarks import plays_episodes
from tasks.journal.freeze import waiting
from tasks.workers.worker import Worker

PROMPT = 20  # tokens of an arithmetic problem itself; the prefix that all prompts share is read once
WRITTEN = 0.4  # share of the allowed tokens that an answer uses (20 to 26 of 64 in starter nights)
READ, TRAIN = 2, 6  # FLOP per token and parameter: forward; forward and backward
# Shares of the matmul speed (fp32, 140 GFLOP/s) that nights on two cores of an EPYC Zen 3 reached. Sampling a round
# took 28 s for 256 answers and 42 s for 384; a step of 24 worked solutions took 11.8 s.
SAMPLING, TRAINING = 0.6, 0.95
# Seconds spent outside matmuls, measured on a machine with fast matmuls (2.7 TFLOP/s with AMX): per sampled token and
# parameter, per trained token and parameter, and per optimizer step.
SAMPLED_TOKEN, TRAINED_TOKEN, STEP = 0.0005 / 135e6, 0.001 / 135e6, 0.3
ROUND = 1.0  # seconds of a round that any model takes, measured with one of a million parameters
WITH_SIGNAL = 0.7  # share of a round's tokens that are trained on; groups without signal are left out
QUIZZES = 3  # before and after the lessons, and after the rounds
ROWS, WIDTH, INNER = 1280, 576, 1536  # matmul shapes: a microbatch's tokens, and the starter student's layer sizes
LIMIT = 120.0  # seconds
NOMINAL = 1e12  # FLOP/s; an arbitrary value, because the estimate is rescaled to measured times
TIMED = {"seconds_sample", "seconds_update", "seconds_round"}  # metrics of an uninterrupted round


def estimate(
    config: NightConfig, parameters: float, flops_per_second: float, *, answers_first: bool = False
) -> Estimate:
    """Estimate a night of single-turn answers for a student with this number of parameters.

    `answers_first`: whether the lesson begins with the student answering its problems, as a trained student's does.

    A token costs 2 FLOP per parameter to read or write and 6 to train on (Kaplan et al. 2020, arXiv 2001.08361, table
    1), plus a time that does not depend on matmul speed, but grows with the model. The prompt that a group shares
    counts once.
    """
    read = parameters * (READ / (SAMPLING * flops_per_second) + SAMPLED_TOKEN)
    train = parameters * (TRAIN / (TRAINING * flops_per_second) + TRAINED_TOKEN)
    written = WRITTEN * config.grpo.max_completion_tokens
    group, trained_on = config.grpo.group_size, config.grpo.train_on or config.grpo.group_size
    sampled, trained = (config.grpo.prompts_per_round * (PROMPT + size * written) for size in (group, trained_on))
    lesson = config.distill.steps if any(step.kind == "distill" for step in config.steps) else 0
    rehearsed = config.distill.rehearsal * config.distill.batch_size
    solved, longest = config.distill.batch_size - rehearsed, PROMPT + config.grpo.max_completion_tokens
    return Estimate(
        sampling=sampled * read,
        update=ROUND + config.grpo.steps_per_round * STEP + WITH_SIGNAL * trained * train,
        answer=(PROMPT + WRITTEN * config.exam.max_completion_tokens) * read,
        step=STEP + solved * (PROMPT + written) * (train + answers_first * read) + rehearsed * longest * (train + read),
        steps=lesson,
        quizzed=QUIZZES * config.lessons.quiz_problems,
    )


def expected(home: Home, config: NightConfig, date: str | None = None) -> Estimate | None:
    """Estimate a night on this machine from the newest finished night of the same name with uninterrupted rounds.

    Without such a night, uses this machine's CPU speed. Returns None if that is not possible either, because the night
    uses a GPU or environments, whose episodes have no predictable length. `date`: the night's, by default tonight's.
    """
    parameters = 1e9 * billions_of_parameters(config.student.source)
    date = date or date_of_night(clocks_in(config.deadline_time_zone))
    start = expected_start(home, config, date)
    trained = start is not None and parent_of(start) is not None
    if not _has_solutions(home, config, date, start, trained):
        config = config.model_copy(update={"distill": config.distill.model_copy(update={"steps": 0})})
    for night in finished(home.nights, config.name):
        rounds = [figures for figures in read_round_metrics(night) if figures.keys() >= TIMED]
        if rounds and (known := config_of(night)):
            samplings, updates = ([one[f"seconds_{what}"] for one in rounds] for what in ("sample", "update"))
            others = [one["seconds_round"] - one["seconds_sample"] - one["seconds_update"] for one in rounds]
            usual = estimate(known, parameters, NOMINAL)
            now = estimate(config, parameters, NOMINAL, answers_first=trained)
            sampling, update = median(samplings) / usual.sampling, median(updates) / usual.update
            step, paced = now.step * update, read_steps(night / PACE_FOLDER / "distill.json")
            if plays_episodes(config.benchmarks) and paced:
                step = paced.seconds_a_step * config.distill.batch_size / known.distill.batch_size
            return replace(
                now,
                sampling=now.sampling * sampling + max(0.0, median(others)),
                update=now.update * update,
                answer=now.answer * sampling,
                step=step,
            )
    if plays_episodes(config.benchmarks):
        return None
    speed = measure_speed()
    return None if speed is None else estimate(config, parameters, speed, answers_first=trained)


def _has_solutions(home: Home, config: NightConfig, date: str, start: Path | None, trained: bool) -> bool:
    """Return whether the student has worked solutions to learn.

    A trained one skips those of a generated day, except of joined levels.
    """
    lesson = config.distill
    if lesson.reference_solutions or lesson.files or lesson.teacher:
        return True
    generated = config.day.generated_traces and (not trained or joined_levels(config, home, date))
    return bool(generated or waiting(home.journal, date, start, 0.0)["trace"])


@cache
def measure_speed(seconds: float = 2.0) -> float | None:
    """Return this CPU's FLOP/s in matmuls of about the starter student's shapes. The result is cached.

    A child process takes the measurement on all available cores, in the precision that trainer and engine use. Returns
    None if the night would use a GPU, or if the child process fails.
    """
    worker = Worker("speed", trainer_environment(), quiet=LIMIT, limit=LIMIT)
    try:
        return worker.call(_products, seconds)
    except (NightError, ImportError):
        return None
    finally:
        worker.end(grace=0)


def _products(seconds: float) -> float | None:
    """Multiply matrices for about `seconds` seconds, in the child process. Returns the FLOP/s, or None on a GPU."""
    import numpy as np
    import torch
    from torch.utils.benchmark import Timer

    from models.hf.hardware import compute_dtype, cores, resolve_device

    device = resolve_device("auto")
    if device.type != "cpu":
        return None
    tokens, weights = (torch.randn(shape, dtype=compute_dtype(device)) for shape in ((ROWS, WIDTH), (WIDTH, INNER)))
    timer = Timer("tokens @ weights", globals={"tokens": tokens, "weights": weights}, num_threads=len(cores()))
    times = timer.blocked_autorange(min_run_time=seconds).times
    quick = float(np.quantile(times, 0.25))  # what else runs at this moment need not run all night
    return 2 * ROWS * WIDTH * INNER / quick


def minutes_left(config: NightConfig, date: str | None = None, since: float | None = None) -> float | None:
    """Return the minutes left to the night of `date` that began at `since`, or None without a limit or time left."""
    hours = Hours.of(config, date or date_of_night(clocks_in(config.deadline_time_zone)), since)
    left = (hours.end - time.time()) / 60
    return None if math.isinf(left) or left <= 0 else left


@dataclass(frozen=True)
class Forecast:
    """Says how many rounds fit into a night that begins now. `enough`: if none fits, the minutes that a night needs."""

    sentence: str
    enough: int | None = None


def forecast(home: Home, config: NightConfig) -> Forecast | None:
    """Forecast how many rounds fit into a night that begins now. None if it has no time limit, rounds or estimate.

    Raises InputError if the night would end before it could finish an exam of one look.
    """
    minutes = minutes_left(config)
    if minutes is None or (known := expected(home, config)) is None:
        return None
    if 60 * minutes < known.least:
        setting = (
            "deadline" if config.budget_minutes is None or minutes < config.budget_minutes - 1 else "budget_minutes"
        )
        raise InputError(
            f"{setting}: {_minutes(minutes)} are too few: start-up, an exam of {FIRST_LOOK} problems and the report "
            f"alone take about {math.ceil(known.least / 60)} minutes on this machine; allow more than that"
        )
    if not config.rounds:
        return None
    number, steps = known.rounds_that_fit(minutes), known.steps_that_fit(minutes)
    if not number:
        enough = known.minutes_enough()
        none = f"At this machine's speed no round fits into {_minutes(minutes)}; {enough} minutes would do."
        return Forecast(none, enough)
    rounds = "1 round fits" if number == 1 else f"{number} rounds fit"
    sentence = f"At this machine's speed about {rounds} into {_minutes(minutes)}; {config.rounds} are planned."
    if steps < known.steps:
        sentence += f" The lesson has time for about {steps} of at most {known.steps} steps."
    return Forecast(sentence)


def _minutes(minutes: float) -> str:
    return f"{minutes:.0f} minutes" if minutes >= 2 else f"{minutes:.1f} minutes"
