"""What a night's parts take on this machine: from the rounds of an earlier night, else from its speed at products."""

import math
import time
from dataclasses import dataclass, replace
from functools import cache
from statistics import median

from conf.load import config_of
from conf.schema import NightConfig
from conf.sections.hours import clocks_in
from conf.storage.home import Home, InputError, NightError
from flows.run.budget import EXAM_SHARE, LESSONS_SHARE, Hours
from flows.run.dates import date_of_night
from flows.run.history import finished, read_round_metrics
from flows.run.machine import billions_of_parameters
from models.engine.environment import trainer_environment
from rewards.data.benchmarks import configured
from tasks.workers.worker import Worker

PROMPT = 20  # tokens of arithmetic's own; what prompts begin with is read once
WRITTEN = 0.4  # of the tokens that an answer may have (docs/performance.md: 20 to 26 of 64)
READ, TRAIN = 2, 6  # FLOP of a token, times the parameters: forward; forward and backward
# Share of the products' speed that is reached, by the nights on two cores of an EPYC Zen 3 (fp32, 140 GFLOP/s): a round
# of 256 answers sampled in 28 s, one of 384 in 42; a step of 24 worked solutions in 11.8 s.
SAMPLING, TRAINING = 0.6, 0.95
# Seconds that no product takes, seen where products are fast (2.7 TFLOP/s with AMX): of a token sampled, of a token
# trained on, and of an optimizer step.
SAMPLED_TOKEN, TRAINED_TOKEN, STEP = 0.0005, 0.001, 0.3
WITH_SIGNAL = 0.7  # share of a round's tokens that are trained on: groups without a signal are left out
FIXED = 90.0  # seconds: enrolment, imports, the engine's start, decision and report
FIRST_LOOK, MODELS = 100, 2  # problems of the exam's first look, and the models that answer them
QUIZZES = 3  # before and after the lessons, and after the rounds
ROWS, WIDTH, INNER = 1280, 576, 1536  # of a product: a microbatch's tokens, and the starter student's layers
LIMIT = 120.0  # seconds
NOMINAL = 1e12  # FLOP/s, where the estimate is scaled to what was measured
LONGEST = 7 * 24 * 60  # minutes
TIMED = {"seconds_sample", "seconds_update", "seconds_round"}  # of a round that was not interrupted


@dataclass(frozen=True)
class Estimate:
    """Seconds of a night's parts on this machine.

    `sampling` and `update`: of one round. `answer`: of one model to one problem of the exam. `step`: of a lesson of
    worked solutions, of which `steps` are planned. `fixed`: of all that is neither lesson, answer nor update.
    `quizzed`: training problems answered in quizzes.
    """

    sampling: float
    update: float
    answer: float
    step: float
    steps: int
    fixed: float
    quizzed: int

    @property
    def round(self) -> float:
        """Seconds of one round."""
        return self.sampling + self.update

    @property
    def least(self) -> float:
        """Seconds of the shortest night: its fixed costs, and an exam of one look."""
        return self.fixed + MODELS * FIRST_LOOK * self.answer

    def rounds_that_fit(self, minutes: float) -> int:
        """Return about how many rounds fit into a night of so many minutes, as its hours are divided."""
        hours = 60 * minutes
        exam = max(MODELS * FIRST_LOOK * self.answer, EXAM_SHARE * hours)
        left = hours - self.fixed - exam - self.quizzed * self.answer
        rounds = left - min(self.steps * self.step, LESSONS_SHARE * left)
        return max(0, math.floor(rounds / self.round))

    def minutes_for_a_round(self) -> int:
        """Return the least whole minutes into which a round fits; a week where it takes longer than that."""
        return next((minutes for minutes in range(1, LONGEST) if self.rounds_that_fit(minutes)), LONGEST)


def estimate(config: NightConfig, parameters: float, flops_per_second: float) -> Estimate:
    """Return what a night of single answers takes with a student of so many parameters.

    A token costs 2 FLOP a parameter to read or write, and 6 to train on (Kaplan et al. 2020, arXiv 2001.08361, table
    1), and what does not depend on the speed of products; a group's prompt counts once.
    """
    read = READ * parameters / (SAMPLING * flops_per_second) + SAMPLED_TOKEN
    train = TRAIN * parameters / (TRAINING * flops_per_second) + TRAINED_TOKEN
    written = WRITTEN * config.grpo.max_completion_tokens
    group, trained_on = config.grpo.group_size, config.grpo.train_on or config.grpo.group_size
    sampled, trained = (config.grpo.prompts_per_round * (PROMPT + size * written) for size in (group, trained_on))
    lesson = config.distill.steps if any(step.kind == "distill" for step in config.steps) else 0
    return Estimate(
        sampling=sampled * read,
        update=config.grpo.steps_per_round * STEP + WITH_SIGNAL * trained * train,
        answer=(PROMPT + WRITTEN * config.exam.max_completion_tokens) * read,
        step=STEP + config.distill.batch_size * (PROMPT + written) * train,
        steps=lesson,
        fixed=FIXED,
        quizzed=QUIZZES * config.lessons.quiz_problems,
    )


def expected(home: Home, config: NightConfig) -> Estimate | None:
    """Return what a night takes here, by the rounds of the newest finished night of its name that had any.

    Without one by the speed of this machine's CPU. None where nothing is known: on a GPU, and for environments, whose
    episodes have any length.
    """
    parameters = 1e9 * billions_of_parameters(config.student.source)
    for night in finished(home.nights, config.name):
        rounds = [figures for figures in read_round_metrics(night) if figures.keys() >= TIMED]
        if rounds and (known := config_of(night)):
            samplings, updates = ([one[f"seconds_{what}"] for one in rounds] for what in ("sample", "update"))
            others = [one["seconds_round"] - one["seconds_sample"] - one["seconds_update"] for one in rounds]
            usual, now = (estimate(each, parameters, NOMINAL) for each in (known, config))
            sampling, update = median(samplings) / usual.sampling, median(updates) / usual.update
            return replace(
                now,
                sampling=now.sampling * sampling + max(0.0, median(others)),
                update=now.update * update,
                answer=now.answer * sampling,
                step=now.step * update,
            )
    if any(configured(source).environment for source in config.benchmarks):
        return None
    speed = measure_speed()
    return None if speed is None else estimate(config, parameters, speed)


@cache
def measure_speed(seconds: float = 2.0) -> float | None:
    """Return the FLOP/s of this machine's CPU at products of about the starter student's shapes, measured once.

    On all cores that may be used, in the precision of trainer and engine, in a child process. None where a GPU would
    compute, or the child fails.
    """
    worker = Worker("speed", trainer_environment(), quiet=LIMIT)
    worker.until = time.time() + LIMIT
    try:
        return worker.call(_products, seconds)
    except (NightError, ImportError):
        return None
    finally:
        worker.end(grace=0)


def _products(seconds: float) -> float | None:
    """In the child: multiply for so many seconds."""
    import torch
    from torch.utils.benchmark import Timer

    from models.hf.hardware import compute_dtype, cores, resolve_device

    device = resolve_device("auto")
    if device.type != "cpu":
        return None
    tokens, weights = (torch.randn(shape, dtype=compute_dtype(device)) for shape in ((ROWS, WIDTH), (WIDTH, INNER)))
    timer = Timer("tokens @ weights", globals={"tokens": tokens, "weights": weights}, num_threads=len(cores()))
    return 2 * ROWS * WIDTH * INNER / timer.blocked_autorange(min_run_time=seconds).mean


def minutes_left(config: NightConfig) -> float | None:
    """Return how many minutes a night that begins now has; None without hours, or where its deadline is past."""
    hours = Hours.of(config, date_of_night(clocks_in(config.deadline_time_zone)))
    left = (hours.end - time.time()) / 60
    return None if math.isinf(left) or left <= 0 else left


@dataclass(frozen=True)
class Forecast:
    """How many rounds fit into a night that begins now, as a sentence. `enough`: minutes for one, where none fits."""

    sentence: str
    enough: int | None = None


def forecast(home: Home, config: NightConfig) -> Forecast | None:
    """Return how many rounds fit into a night that begins now; None without hours or an estimate."""
    minutes = minutes_left(config)
    if minutes is None or not config.rounds or (known := expected(home, config)) is None:
        return None
    if not (number := known.rounds_that_fit(minutes)):
        enough = known.minutes_for_a_round()
        none = f"At this machine's speed no round fits into {_minutes(minutes)}; {enough} minutes would do."
        return Forecast(none, enough)
    rounds = "1 round fits" if number == 1 else f"{number} rounds fit"
    return Forecast(f"At this machine's speed about {rounds} into {_minutes(minutes)}; {config.rounds} are planned.")


def round_expected(home: Home, config: NightConfig) -> tuple[float, int] | None:
    """Return the seconds of a round, and the minutes of a night that has time for one; None without an estimate."""
    known = expected(home, config)
    return known and (known.round, known.minutes_for_a_round())


def check_hours(home: Home, config: NightConfig) -> None:
    """Raise InputError where a night that begins now is over before an exam of one look."""
    minutes = minutes_left(config)
    if minutes is None or (known := expected(home, config)) is None or 60 * minutes >= known.least:
        return
    budget = config.budget_minutes
    setting = "deadline" if budget is None or minutes < budget - 1 else "budget_minutes"
    raise InputError(
        f"{setting}: {_minutes(minutes)} are too short for anything: what every night does and an exam of {FIRST_LOOK} "
        f"problems take about {math.ceil(known.least / 60)} minutes on this machine; give it at least those"
    )


def _minutes(minutes: float) -> str:
    return f"{minutes:.0f} minutes" if minutes >= 2 else f"{minutes:.1f} minutes"
