"""The whole night: freeze → lessons and rounds → exam → decision → promotion → report."""

import datetime
import json
import logging
import shutil
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

from mlflow.exceptions import MlflowException
from prefect import flow
from prefect.context import FlowRunContext
from prefect.runtime import flow_run
from prefect.states import Completed, State

from conf.load import STARTER, load_night
from conf.schema import NightConfig, SandboxConfig
from conf.sections.benchmark import ExamPart
from conf.sections.hours import clocks_in
from conf.storage.durable import DiskFullError, disk_is_full, full_disk
from conf.storage.home import SHORT_REPORT, Home, NightError
from conf.storage.locks import NIGHT, NightRunningError, alias_lock, hold, holds, wait_until_free
from flows.evaluation.alpha_history import earlier_exams
from flows.evaluation.run import log_exams, sit, slowest
from flows.evaluation.vault import Vault
from flows.grpo import Rounds
from flows.orchestration.client import need_no_server
from flows.orchestration.reconcile import claim_flow_run, claim_mlflow_run
from flows.run.budget import LATE
from flows.run.context import Night, freeze_config, is_begun, settle_layout
from flows.run.dates import check_deadline, checked_date, date_of_night, too_late
from flows.run.history import way_on
from flows.run.preflight import check_night, finished_summary
from flows.training.inputs import champion_of, frozen_day, reward_model_of, teacher_of
from flows.training.recipe import Course
from flows.training.reward_model import learned_reward, log_rankings, rank_held_out
from flows.web.links import links_of, prefect_link
from rewards.verifier import Problem
from tasks.evaluation.decide import decide
from tasks.evaluation.evaluate import exam_problems
from tasks.monitoring.notify import tell_morning
from tasks.registry.mlflow_registry import Registry
from tasks.registry.model_card import write_cards
from tasks.registry.promote import OUTCOME, promote, show_who_serves
from tasks.registry.prune import prune
from tasks.registry.push import push
from tasks.report.report import report, summarise, write_report
from tasks.stage import Artifact
from tasks.tracking import HOME_TAG, Tracking, home_mark


def carry_out(night: Night, decision: Artifact, sitters: Mapping[str, Path], tracking: Tracking) -> dict[str, Any]:
    """Promotes, if so decided. Returns the decision as it was carried out, and raises what `promote` does."""
    config = night.config
    write_cards(night.folder, decision.read_json("decision.json"), sitters, config)
    found = promote(decision, sitters, night.home, tracking, config.name)
    show_who_serves(Registry(tracking.client, config.name))
    if found["promote"] and (repo := config.tracking.hub_repo):
        failure = push(sitters["candidate"], repo, f"{config.name}, the night {night.date}")
        if failure:
            night.note(failure)
    return found


def left_open(
    night: Night, decision: Artifact, rounds: int, alarms: Sequence[str], links: Mapping[str, str]
) -> NightError:
    """The error that ends a night to which MLflow does not answer any more; before it, the report is written.

    The night is not finished: the command in the sentence does what is left to do, and nothing else. What was carried
    out already, the aliases moved or left where they were, the report says as it is.
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
        f"with: {way_on(night.folder)}"
    )
    write_report(night.folder, summarise(night.folder, found, rounds, [sentence, *alarms], links), found)
    if variable := night.config.morning.webhook_variable:
        tell_morning(variable, (night.folder / SHORT_REPORT).read_text())
    return NightError(sentence)


SAVING_LIMIT = 60  # seconds
REFUSED = "Refused"


def _scheduled(config: NightConfig) -> datetime.datetime:
    """The scheduled start of this run, as the night's clocks show it; of one that a person starts: now."""
    moment = flow_run.get_scheduled_start_time()
    return clocks_in(config.deadline_time_zone, moment.timestamp() if moment else None)


def _begun() -> float | None:
    """When this run began, in seconds since the epoch: of one that a worker tries again, when it first did."""
    context = FlowRunContext.get()
    first = context.flow_run.start_time if context and context.flow_run else None
    return first.timestamp() if first else None


def _run_name() -> str:
    parameters = flow_run.get_parameters()
    return parameters.get("date") or date_of_night(_scheduled(parameters.get("config") or load_night(STARTER)))


@flow(name="nightly", flow_run_name=_run_name, description="One night of study, from the journal to the report.")
def nightly(
    config: NightConfig | None = None, date: str | None = None, dry_run: bool = False
) -> dict[str, Any] | State[Any]:
    """Runs or goes on with the night of a date (default: of its scheduled start) on the home. Returns its summary.

    A `dry_run` decides and moves no alias; whoever goes on with the night moves none either.

    A start that comes too late, or while another night runs, ends in the state `Refused`, which says why: no night has
    failed. Raises InputError for a date, a deadline or a configuration that cannot be, and where the server by day
    does not make room, before anything is learned.
    """
    home, config = Home.here(), config or load_night(STARTER)
    now, scheduled = clocks_in(config.deadline_time_zone), _scheduled(config)
    if reason := too_late(scheduled, now, flow_run.get_run_count()):
        return Completed(name=REFUSED, message=reason)
    date = checked_date(date or date_of_night(min(scheduled, now)), "date", now)
    goes_on, looked = is_begun(home.night(date)), holds(home.root)  # the command holds the home, and has looked
    if not goes_on:
        check_deadline(config, date, now)
    logging.getLogger("nightschool").setLevel(logging.INFO)
    need_no_server()
    try:
        with hold(home.root, f"{NIGHT}{date}"):
            settle_layout(home)
            claim_flow_run(home)
            if summary := finished_summary(home, date):
                return summary
            if not looked:
                check_night(home, config, goes_on)
            freeze_config(home.night(date), config, fresh=False, dry_run=dry_run)
            wait_until_free(home.root)
            return concluded(study(Night(home, date, config, _begun())))
    except NightRunningError as error:
        return Completed(name=REFUSED, message=str(error))


def study(night: Night) -> dict[str, Any]:
    """All stages of a night; what is committed already is not run again."""
    tracking = Tracking(night.home, night.config)
    tracking.open_run(night.folder, night.config, {HOME_TAG: home_mark(night.home), **prefect_link()})
    claim_mlflow_run(night.home, tracking.client, tracking.experiment_id, tracking.run_id)
    try:
        summary = _stages(night, tracking)
    except BaseException as error:
        interrupted = not isinstance(error, Exception)  # by Ctrl-C, or by Prefect: cancelled, or its worker ends
        night.close(grace=0 if interrupted else SAVING_LIMIT)  # a state that is being written is worth waiting for
        with suppress(Exception):  # on a full disk nobody can note that it failed; what was raised matters more
            tracking.close_run("KILLED" if interrupted else "FAILED")
        if disk_is_full(error) and not isinstance(error, DiskFullError):
            raise full_disk(night.home.root) from error
        raise
    if variable := night.config.morning.webhook_variable:
        tell_morning(variable, (night.folder / SHORT_REPORT).read_text())
    return summary


def _stages(night: Night, tracking: Tracking) -> dict[str, Any]:
    config = night.config
    with alias_lock(night.home):
        Registry(tracking.client, config.name).settle()
    champion = champion_of(night, tracking)
    day = frozen_day(night, champion)
    exam, spare = (_problems(parts, config.sandbox) for parts in (config.exam.parts, config.exam.vault_parts))
    course = Course(night, day, tuple(problem.question for problem in (*exam, *spare)))
    teacher = teacher_of(night, champion)
    night.spare(night.exams)
    distilled = course.before_rounds(champion)
    fitted = reward_model_of(night, day, champion, tracking, course.questions)
    night.spare(-LATE)
    versions = Registry(tracking.client, config.name).versions()
    vault = Vault(night, versions, champion)
    vault.begin()
    sat = {
        "champion": sit(night, "evaluate/champion", champion),
        "distilled": sit(night, "evaluate/distilled", distilled),
    }
    exams = slowest(sat) * (1 + len(spare) / len(exam))  # the rounds leave time for the vault's, too
    for who, checkpoint in {"champion": champion, "distilled": distilled}.items():
        rank_held_out(night, fitted, who, checkpoint)
    learned = learned_reward(night, day, fitted, distilled, [*exam, *spare])
    registered = {version.digest for version in versions}
    rounds = Rounds(night, [*exam, *spare], tracking, registered, exams, learned, teacher)
    sitters = {"champion": champion, "distilled": distilled, "candidate": course.run(rounds, distilled)}
    rank_held_out(night, fitted, "candidate", sitters["candidate"])
    night.trainer.close()
    sat["candidate"] = sit(night, "evaluate/candidate", sitters["candidate"])
    decision = night.run(
        decide,
        "decide",
        **sat,
        exam=config.exam,
        seed=config.seed,
        severe=rounds.watch.severe,
        earlier_exams=earlier_exams(night.home, night.date, config),
    )
    return _morning(night, tracking, decision, sitters, sat, rounds, vault)


def _morning(
    night: Night,
    tracking: Tracking,
    decision: Artifact,
    sitters: Mapping[str, Path],
    sat: Mapping[str, Artifact],
    rounds: Rounds,
    vault: Vault,
) -> dict[str, Any]:
    """The decision is carried out, what is old goes, and the report is written: from then on the night is finished.

    Raises NightError where MLflow does not answer, after a report that says how to finish the night.
    """
    config, watch, links, number = night.config, rounds.watch, links_of(tracking), len(rounds.policies)
    try:
        carried_out = carry_out(night, decision, sitters, tracking)
        log_exams(tracking, sat)
        log_rankings(tracking, night.folder, sitters)
        serving = carried_out["serving"] or sitters["champion"].name
        watch.book.record(vault.alarms(night.home.checkpoints / serving))
        prune(night.home, config.keep_nights, Registry(tracking.client, config.name))
        rounds.retire(keep=set(sitters.values()))
        shutil.rmtree(night.folder / "state", ignore_errors=True)
        night.close()  # before the night counts as finished: to end the children takes seconds
        return report(night.folder, carried_out, number, watch.morning(), links, tracking)
    except MlflowException as error:
        if disk_is_full(error):
            raise
        raise left_open(night, decision, number, watch.book.sentences, links) from error


def _problems(parts: Sequence[ExamPart], sandbox: SandboxConfig) -> list[Problem]:
    return [problem for part in parts for _, problem in exam_problems(part, sandbox)]


def concluded(summary: dict[str, Any]) -> Any:
    """The summary as the flow's result, in a final state whose message says the alarms first. Prefect hands the state's
    data on to whoever called the flow.
    """
    alarms = summary["alarms"]
    told = f"{len(alarms)} alarm{'s' * (len(alarms) > 1)}: {' '.join(alarms)}" if alarms else "No alarms."
    outcome = "The candidate was promoted." if summary["decision"] == "promoted" else "The champion stays."
    return Completed(message=f"{told} {outcome}", data=summary)
