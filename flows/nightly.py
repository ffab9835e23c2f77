"""The whole night: journal → lessons → rounds → exam → decision → promotion → report."""

import datetime
import json
import logging
import shutil
import time
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

from mlflow.exceptions import MlflowException
from prefect import flow
from prefect.runtime import flow_run
from prefect.states import Completed, State

from conf.load import STARTER, load_night
from conf.schema import NightConfig
from conf.sections.hours import clocks_in
from conf.storage.durable import DiskFullError, disk_is_full, full_disk
from conf.storage.home import SHORT_REPORT, Home, NightError
from conf.storage.locks import NIGHT, NightRunningError, alias_lock, hold, holds, wait_for_server
from flows.evaluation.run import Exam, first_student, log_exams
from flows.grpo import Rounds
from flows.orchestration.client import tolerate_lost_server
from flows.orchestration.reconcile import claim_flow_run, claim_mlflow_run
from flows.run.budget import LATE, Division, divide
from flows.run.context import Night, first_start, freeze_config, is_begun, prepare_home
from flows.run.dates import check_deadline, checked_date, date_of_night, too_late
from flows.run.history import resume_command
from flows.run.levels import level_news, with_next_level
from flows.run.preflight import check_night, finished_summary
from flows.run.speed import forecast, round_expected
from flows.training.day_copy import OwnersDay
from flows.training.inputs import champion_of, frozen_day, log_datasets, teacher_of
from flows.training.judge import learned_reward, log_judge
from flows.training.recipe import Recipe
from flows.training.reward_model import log_rankings, rank_held_out
from flows.training.start import start_of
from flows.training.validation import Quizzes
from flows.web.links import links_of, prefect_link
from models.checkpoint import parent_of
from tasks.cluster import cluster
from tasks.evaluation.answering import count_stored, exam_problems
from tasks.evaluation.decide import decide
from tasks.evaluation.sequential import successor_alpha
from tasks.evaluation.taste import compare_taste
from tasks.monitoring.notify import post_report
from tasks.registry.mlflow_registry import Registry
from tasks.registry.model_card import write_cards
from tasks.registry.promote import OUTCOME, promote, show_who_serves
from tasks.registry.prune import prune
from tasks.registry.push import push
from tasks.report.report import report, summarise, write_report
from tasks.stage import Artifact
from tasks.tracking import HOME_TAG, Tracking, home_mark

SAVING_LIMIT = 60  # seconds
REFUSED = "Refused"


def _scheduled(config: NightConfig) -> datetime.datetime:
    """Return the scheduled start of this run in the night's time zone; now, for one that a person starts."""
    moment = flow_run.get_scheduled_start_time()
    return clocks_in(config.deadline_time_zone, moment.timestamp() if moment else None)


def _run_name() -> str:
    """Return the name of the run on Prefect's pages, its date last: `starter 2026-11-20`."""
    parameters = flow_run.get_parameters()
    config = parameters.get("config") or load_night(STARTER)
    return f"{config.name} {parameters.get('date') or date_of_night(_scheduled(config))}"


@flow(name="nightly", flow_run_name=_run_name, description="One night of study, from the journal to the report.")
def nightly(
    config: NightConfig | None = None, date: str | None = None, dry_run: bool = False
) -> dict[str, Any] | State[Any]:
    """Run or resume the night of a date (default: that of the scheduled start) on the home. Returns its summary.

    A `dry_run` decides, but does not promote; nor does a later start of the same night.

    A start that comes too late, or while another night runs, ends in the state `Refused`, which says why: no night has
    failed. Raises InputError for an impossible date, deadline or configuration, and where the served champion does not
    make room, before anything is learned.
    """
    home, config = Home.here(), config or load_night(STARTER)
    now, scheduled = clocks_in(config.deadline_time_zone), _scheduled(config)
    if reason := too_late(scheduled, now, flow_run.get_run_count()):
        return Completed(name=REFUSED, message=reason)
    date = checked_date(date or date_of_night(min(scheduled, now)), "date", now)
    config = with_next_level(config, home, date)
    resumed, checked = is_begun(home.night(date)), holds(home.root)  # the command holds the home, and has checked
    if not resumed:
        check_deadline(config, date, now)
    logging.getLogger("nightschool").setLevel(logging.INFO)
    tolerate_lost_server()
    try:
        with hold(home.root, f"{NIGHT}{date}"):
            prepare_home(home)
            claim_flow_run(home)
            if summary := finished_summary(home, date):
                return summary
            if not checked:
                check_night(home, config, resumed)
                if not resumed and (found := forecast(home, config)):
                    logging.getLogger("nightschool").info(found.sentence)
            freeze_config(home.night(date), config, fresh=False, dry_run=dry_run)
            wait_for_server(home.root)
            night = Night(home, date, config, first_start(home.night(date)))
            night.prepare_workers()
            return final_state(run_night(night))
    except NightRunningError as error:
        return Completed(name=REFUSED, message=str(error))


def run_night(night: Night) -> dict[str, Any]:
    """Run all stages of a night; what is committed already is not run again."""
    tracking = Tracking(night.home, night.config)
    tracking.open_run(night.folder, night.config, {HOME_TAG: home_mark(night.home), **prefect_link()})
    claim_mlflow_run(night.home, tracking.client, tracking.experiment_id, tracking.run_id)
    try:
        summary = _run_stages(night, tracking)
    except BaseException as error:
        interrupted = not isinstance(error, Exception)  # by Ctrl-C, or by Prefect: cancelled, or its worker ends
        night.close(grace=0 if interrupted else SAVING_LIMIT)  # a state that is being written is worth waiting for
        with suppress(Exception):  # on a full disk MLflow cannot be told either; the error itself matters more
            tracking.close_run("KILLED" if interrupted else "FAILED")
        if disk_is_full(error) and not isinstance(error, DiskFullError):
            raise full_disk(night.home.root) from error
        raise
    if variable := night.config.morning.webhook_variable:
        post_report(variable, (night.folder / SHORT_REPORT).read_text())
    return summary


def _run_stages(night: Night, tracking: Tracking) -> dict[str, Any]:
    """Run the stages of `tasks/plan.py`, from the champion to the report."""
    config = night.config
    with alias_lock(night.home):
        Registry(tracking.client, config.name).finish_alias_move()
    champion = champion_of(night, tracking)
    versions = Registry(tracking.client, config.name).versions()
    start, unpromoted = start_of(night, champion)
    journal = frozen_day(night, start)
    exam = {part: exam_problems(part, config.sandbox) for part in config.exam.parts}
    problems = [problem for chosen in exam.values() for problem in chosen]
    asked_in_exam = tuple(problem.question for problem in problems)
    log_datasets(tracking, config, exam)
    teacher = teacher_of(night, champion)

    quizzes = Quizzes(night, asked_in_exam)
    day = OwnersDay(night, champion, quizzes, journal, tracking, asked_in_exam)
    student = start if config.start_from != "day" else day.student()
    before = quizzes.ask("start", student)
    night.rest_engine()
    stored = count_stored(config, champion, exam[config.exam.target], night.home.exams)
    sizes = len(exam[config.exam.target]), stored
    division = divide(night.hours, config, night.folder, *sizes, before, lambda: round_expected(night.home, config))
    night.limit_workers(before_end=(division.exam or 0.0) + (division.after or 0.0))

    recipe = Recipe(night, student, parent_of(start) is not None, journal, asked_in_exam, quizzes, division)
    distilled = recipe.before_rounds()
    night.trainer.until = min(night.trainer.until, time.time() + division.left(night.folder, config.steps))
    reward_model = day.reward_model
    night.limit_workers(before_end=-LATE)
    learned = learned_reward(night, journal, reward_model, champion, distilled, problems)
    log_judge(tracking, night.folder)
    registered = {version.digest for version in versions}
    rounds = Rounds(night, problems, tracking, registered, division, before, learned, teacher)
    candidate = recipe.run(rounds, distilled)

    students = {"champion": champion, "start": student, "distilled": distilled, "candidate": candidate}
    picks = {**day.champion_picks, **rank_held_out(night, reward_model, "candidate", candidate)}
    night.trainer.close()
    first = first_student(night, versions, champion)
    taken = quizzes.of({"start": student, "end": candidate})
    decision, exams = _decide(night, students, first, division, picks, taken, unpromoted, rounds.monitor.severe)
    examined = ("champion", "distilled", "candidate") if config.exam.after_lessons else ("champion", "candidate")
    models = {role: students[role] for role in examined}
    return _finish(night, tracking, decision, models, exams, rounds)


def _decide(
    night: Night,
    students: Mapping[str, Path],
    first: Path | None,
    division: Division,
    picks: Mapping[str, Artifact],
    quizzes: Mapping[str, Artifact],
    unpromoted: int,
    severe: tuple[str, ...],
) -> tuple[Artifact, Mapping[str, Artifact]]:
    """Examine the candidate and decide. Returns the decision, and the exams by role.

    `students`: champion, start, distilled and candidate. `first`: the first student, where it is another than the
    champion. `picks`: rankings of the held-out picks by champion and candidate. `unpromoted`: nights in a row that made
    the start. `severe`: alarms.
    """
    config, champion, candidate = night.config, students["champion"], students["candidate"]
    alpha = successor_alpha(config.exam.alpha, unpromoted)
    taste = compare_taste(picks.get("champion"), picks.get("candidate"), alpha / 2)
    alpha /= 1 if taste is None else 2  # with enough held-out picks, they and the exam have half of it each
    exam = Exam(night, champion, first, division, alpha)
    examined = exam.sit(candidate, picks_passed=taste is not None and taste.p_value <= alpha)
    whole = ("distilled", "candidate") if config.exam.after_lessons else ()
    decision = night.run(
        decide,
        "decide",
        looks=examined.looks,
        planned=division.looks,
        exams=examined.exams,
        whole={role: exam.sit_whole(role, students[role]) for role in whole},
        quizzes=quizzes,
        digests={role: student.name for role, student in students.items()},
        exam=config.exam,
        alpha=alpha,
        seed=config.seed,
        unpromoted=unpromoted,
        champion_picks=picks.get("champion"),
        candidate_picks=picks.get("candidate"),
        severe=severe,
        news=level_news(config, night.home, night.date),
    )
    return decision, examined.exams


def _finish(
    night: Night,
    tracking: Tracking,
    decision: Artifact,
    models: Mapping[str, Path],
    exams: Mapping[str, Artifact],
    rounds: Rounds,
) -> dict[str, Any]:
    """Promote and write the report: from then on the night is finished, and what only it needed is removed.

    Raises NightError where MLflow does not answer, after a report that says how to finish the night.
    """
    config, monitor, links = night.config, rounds.monitor, links_of(tracking)
    number = len(rounds.retention.policies)
    try:
        outcome = _promote(night, decision, models, tracking)
        log_exams(tracking, exams)
        tracking.log(cluster.figures(night.folder), 0)
        log_rankings(tracking, night.folder, models)
        rounds.retention.remove(keep=set(models.values()))
        shutil.rmtree(night.folder / "state", ignore_errors=True)
        night.close()  # before the night counts as finished: to end the children takes seconds
        summary = night.call(report, "report", night.folder, outcome, number, monitor.finish(), links, tracking)
    except MlflowException as error:
        if disk_is_full(error):
            raise
        raise _unfinished(night, decision, number, monitor.alarms.sentences, links) from error
    try:
        night.call(prune, "prune", night.home, config.keep_nights, Registry(tracking.client, config.name))
    except MlflowException as error:  # the night is finished, and the next one makes room
        logging.getLogger("nightschool").warning("nothing was pruned: %s", error)
    return summary


def _promote(night: Night, decision: Artifact, models: Mapping[str, Path], tracking: Tracking) -> dict[str, Any]:
    """Promote the candidate, if so decided. Returns the decision as it was carried out."""
    config = night.config
    write_cards(night.folder, decision.read_json("decision.json"), models, config)
    outcome = night.call(promote, "promote", decision, models, night.home, tracking, config.name)
    show_who_serves(Registry(tracking.client, config.name))
    if outcome["promote"] and (repo := config.tracking.hub_repo):
        failure = night.call(push, "push", models["candidate"], repo, f"{config.name}, the night {night.date}")
        if failure:
            night.note(failure)
    return outcome


def _unfinished(
    night: Night, decision: Artifact, rounds: int, alarms: Sequence[str], links: Mapping[str, str]
) -> NightError:
    """Write the report and return the error that ends a night to which MLflow does not answer any more.

    The command in the error does what is left to do, and nothing else.
    """
    outcome = night.folder / OUTCOME
    if outcome.exists():
        found = json.loads(outcome.read_text())
        left, stands = "the night's last figures and this report may be missing in it", "its decision is carried out"
    else:
        found = decision.read_json("decision.json") | {"promote": False}
        left, stands = "the promotion is not finished", "its decision stands"
    sentence = (
        f"MLflow does not answer, so that {left}. The night is safe, and {stands}; once MLflow is back, finish it "
        f"with: {resume_command(night.folder)}"
    )
    write_report(night.folder, summarise(night.folder, found, rounds, [sentence, *alarms], links), found)
    if variable := night.config.morning.webhook_variable:
        post_report(variable, (night.folder / SHORT_REPORT).read_text())
    return NightError(sentence)


def final_state(summary: dict[str, Any]) -> Any:
    """Return the flow's final state: alarms and outcome in its message, and the summary as the flow's result."""
    alarms = summary["alarms"]
    raised = f"{len(alarms)} alarm{'s' * (len(alarms) > 1)}: {' '.join(alarms)}" if alarms else "No alarms."
    outcome = "The candidate was promoted." if summary["decision"] == "promoted" else "The champion stays."
    return Completed(message=f"{raised} {outcome}", data=summary)
