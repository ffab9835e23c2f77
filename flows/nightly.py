"""The whole night: journal → lessons → rounds → exam → decision → promotion → report."""

import datetime
import logging
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from functools import partial
from pathlib import Path
from typing import Any

from prefect import flow
from prefect.runtime import deployment, flow_run
from prefect.states import Completed, State

from conf.load import load_night, own_file
from conf.schema import NightConfig
from conf.sections.hours import clocks_in
from conf.storage.durable import DiskFullError, disk_full_error, disk_is_full
from conf.storage.home import START, Home
from conf.storage.locks import NIGHT, NightRunningError, alias_lock, hold, holds, wait_for_server
from conf.storage.log import log
from flows.evaluation.night_exam import decide_night, first_student
from flows.finish import finish, prefect_page
from flows.grpo import Rounds
from flows.orchestration.client import tolerate_lost_server
from flows.orchestration.reconcile import claim_flow_run, claim_mlflow_run
from flows.run.budget import LATE, divide
from flows.run.context import Night, freeze_config, is_begun
from flows.run.dates import check_deadline, checked_date, date_of_night, too_late
from flows.run.levels import with_next_level
from flows.run.preflight import check_night, finished_summary
from flows.run.speed import expected
from flows.training.day_copy import OwnersDay
from flows.training.inputs import champion_of, frozen_day, log_datasets, start_of, teacher_of
from flows.training.lessons import Lessons
from flows.training.quizzes import Quizzes
from flows.training.recipe import Recipe
from flows.training.reward_model import learned_reward, log_judge, rank_held_out
from models.hf.checkpoint import parent_of
from tasks.evaluation.answering import count_stored
from tasks.journal.carry_over import prepare_home
from tasks.monitoring.tracking import HOME_TAG, Tracking, home_mark
from tasks.registry.mlflow_registry import Registry

SAVING_LIMIT = 60  # seconds
REFUSED = "Refused"


def _scheduled(config: NightConfig) -> datetime.datetime:
    """Return the run's scheduled start in the night's time zone, or the current time if the run was started by hand."""
    moment = flow_run.get_scheduled_start_time()
    return clocks_in(config.deadline_time_zone, moment.timestamp() if moment else None)


def _run_name() -> str:
    """Return the run's name on Prefect's pages: the configuration's name, then the date (`starter 2026-11-20`)."""
    parameters = flow_run.get_parameters()
    config = parameters.get("config") or load_night(own_file(Home.here(), parameters.get("date")))
    return f"{config.name} {parameters.get('date') or date_of_night(_scheduled(config))}"


@flow(name="nightly", flow_run_name=_run_name, description="One night of study, from the journal to the report.")
def nightly(
    config: NightConfig | None = None, date: str | None = None, no_promote: bool = False
) -> dict[str, Any] | State[Any]:
    """Run or resume the night of a date (default: the night of the scheduled start). Returns the night's summary.

    Without a `config`, the night has that of the home (see `own_file`). With `no_promote`, the night decides but
    promotes nothing, even if it is resumed without `no_promote`.

    If the start is too late or another night is running, the flow completes in a state named `Refused`, and the state's
    message gives the reason. Prefect does not count this as a failure. Raises InputError, before any training, if the
    date, deadline or configuration is invalid, or if `nightschool serve` does not shut down its engine in time.
    """
    home, given = Home.here(), config
    config = given or load_night(own_file(home, date))
    now, scheduled = clocks_in(config.deadline_time_zone), _scheduled(config)
    if reason := too_late(scheduled, now, flow_run.get_run_count()):
        return Completed(name=REFUSED, message=reason)
    date = checked_date(date or date_of_night(min(scheduled, now)), "date", now)
    config = with_next_level(given or load_night(own_file(home, date)), home, date)
    resumed, checked = is_begun(home.night(date)), holds(home.root)  # the CLI holds the lock and has run the checks
    if not resumed:
        check_deadline(config, date, now)
    log.setLevel(logging.INFO)
    tolerate_lost_server()
    try:
        with hold(home.root, f"{NIGHT}{date}"):
            prepare_home(home)
            claim_flow_run(home)
            if summary := finished_summary(home, date):
                again = deployment.id is None or flow_run.get_run_count() > 1
                return summary if again else Completed(name=REFUSED, message=f"the night {date} is finished already")
            if not checked and (found := check_night(home, config, resumed)):
                log.info(found.sentence)
            freeze_config(home.night(date), config, fresh=False, no_promote=no_promote)
            wait_for_server(home.root)
            night = Night(home, date, config)
            if (night.folder / START).exists():
                night.note("the night was interrupted, and resumed")
            return final_state(run_night(night))
    except NightRunningError as error:
        return Completed(name=REFUSED, message=str(error))


def run_night(night: Night) -> dict[str, Any]:
    """Run all stages of a night, skipping those already committed. Returns the night's summary."""
    tracking = Tracking(night.home, night.config)
    page = {"prefect.flow_run": flow_run.get_id() or "", "prefect.url": prefect_page()}
    tracking.open_run(night.folder, night.config, {HOME_TAG: home_mark(night.home), **page})
    claim_mlflow_run(night.home, tracking.client, tracking.experiment_id, tracking.run_id)
    try:
        with _logged(night.folder / "logs" / "night.log"):
            summary = _run_stages(night, tracking)
    except BaseException as error:
        interrupted = not isinstance(error, Exception)  # by Ctrl-C, or by Prefect (cancelled, or worker ended)
        night.close(grace=0 if interrupted else SAVING_LIMIT)  # let the trainer finish writing its state
        with suppress(Exception):  # a full disk makes this call fail too; the original error matters more
            tracking.close_run("KILLED" if interrupted else "FAILED")
        if disk_is_full(error) and not isinstance(error, DiskFullError):
            raise disk_full_error(night.home.root) from error
        raise
    return summary


@contextmanager
def _logged(file: Path) -> Iterator[None]:
    """Append to a file what the night logs: its stages, warnings, and the error that ended it."""
    file.parent.mkdir(parents=True, exist_ok=True)
    handler = logging.FileHandler(file)
    handler.setFormatter(logging.Formatter("%(asctime)s %(levelname)s %(message)s"))
    handler.handleError = lambda record: None  # a full disk ends the night with a message of its own
    log.addHandler(handler)
    try:
        yield
    except BaseException as error:
        handler.handle(log.makeRecord(log.name, logging.ERROR, "", 0, f"{type(error).__name__}: {error}", (), None))
        raise
    finally:
        log.removeHandler(handler)
        handler.close()


def _run_stages(night: Night, tracking: Tracking) -> dict[str, Any]:
    """Run the stages of a night, from choosing the champion to writing the report."""
    night.prepare_workers()
    config, home, registry = night.config, night.home, Registry(tracking.client, night.config.name)
    with alias_lock(home):
        registry.finish_alias_move()
    champion = champion_of(night, tracking)
    versions = registry.versions()
    start, unpromoted = start_of(night, champion)
    journal = frozen_day(night, start)
    log_datasets(tracking, config, night.exam)
    teacher = teacher_of(night, champion)
    quizzes = Quizzes(night)
    day = OwnersDay(night, champion, quizzes, journal, tracking)
    student = start if config.start_from != "day" else day.student()
    quiz = quizzes.ask("start" if student == start else "day", student)  # a resumed night must find it there

    target = night.exam[config.exam.target]
    player = night.player(champion, config.exam.max_completion_tokens)
    stored = count_stored(player, config.exam.target, target, config.sandbox, home.exams)
    guards = sum(len(night.exam[part]) for part in config.exam.guards)
    division = divide(
        night.hours, config, night.folder, len(target), stored, quiz, partial(expected, home, config), guards
    )
    night.limit_workers(before_end=(division.exam or 0.0) + (division.after or 0.0))

    trained = parent_of(start) is not None  # by an earlier night; daytime learning does not count
    lessons = Lessons(night, journal, trained, division.steps)
    recipe = Recipe(night, student, lessons, quizzes, division)
    distilled = recipe.before_rounds()
    night.trainer.until = min(night.trainer.until, time.time() + division.left(night.folder, config.steps))
    reward_model = day.reward_model
    night.limit_workers(before_end=-LATE)
    learned = learned_reward(night, journal, reward_model, distilled)
    log_judge(tracking, night.folder)
    registered = {version.digest for version in versions}
    latest = quizzes.taken.get(distilled)
    rounds = Rounds(night, tracking, registered, division, quiz, latest, learned, teacher)
    candidate = recipe.run(rounds, distilled)
    night.limit_workers(before_end=-LATE - (division.exam or 0.0))

    picks = day.champion_picks, rank_held_out(night, reward_model, "candidate", candidate)
    night.trainer.close()
    first = first_student(night, versions, champion)
    students = {"champion": champion, "start": student, "distilled": distilled, "candidate": candidate}
    ends = {"start": student, "end": candidate}
    taken = {name: quizzes.taken[each] for name, each in ends.items() if each in quizzes.taken}
    decision, exams = decide_night(
        night, students, first, division, picks, taken, unpromoted, severe=rounds.monitor.severe
    )
    day.ask_again(candidate)
    examined = ("champion", "distilled", "candidate") if config.exam.after_lessons else ("champion", "candidate")
    return finish(night, tracking, decision, {role: students[role] for role in examined}, exams, rounds)


def final_state(summary: dict[str, Any]) -> Any:
    """Return the flow's final state. Its message lists the alarms and the outcome, and its result is the summary."""
    alarms = summary["alarms"]
    raised = f"{len(alarms)} alarm{'s' * (len(alarms) > 1)}: {' '.join(alarms)}" if alarms else "No alarms."
    outcome = "The candidate was promoted." if summary["decision"] == "promoted" else "The champion stays."
    return Completed(message=f"{raised} {outcome}", data=summary)
