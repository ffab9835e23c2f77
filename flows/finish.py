"""The end of a night: promotion, report and cleanup."""

import json
import shutil
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from prefect.runtime import flow_run

from conf.sections.redact import redact
from conf.storage.durable import disk_is_full
from conf.storage.home import SHORT_REPORT, NightError
from conf.storage.locks import AliasesHeldError
from conf.storage.log import log
from flows.evaluation.night_exam import log_exams
from flows.grpo import Rounds
from flows.run.context import Night
from flows.run.history import resume_command
from flows.training.reward_model import log_rankings
from flows.web.address import HERE, MLFLOW_PORT
from tasks.monitoring.notify import post_report
from tasks.monitoring.tracking import UNREACHABLE, Tracking
from tasks.registry.mlflow_registry import Registry
from tasks.registry.model_card import write_cards
from tasks.registry.promote import OUTCOME, promote
from tasks.registry.prune import prune
from tasks.report.report import report, summarise, write_report
from tasks.stage import Artifact
from tasks.workers import cluster


def finish(
    night: Night,
    tracking: Tracking,
    decision: Artifact,
    models: Mapping[str, Path],
    exams: Mapping[str, Artifact],
    rounds: Rounds,
) -> dict[str, Any]:
    """Finish the night: carry out the promotion decision, delete temporary files and write the report.

    Returns the summary. If MLflow does not answer, or another process holds its aliases, writes a report that says what
    to do, and raises NightError.
    """
    config, monitor, links = night.config, rounds.monitor, _links(tracking)
    number = len(rounds.retention.policies)
    try:
        tracking.catch_up()
        write_cards(night.folder, decision.read_json("decision.json"), models, config)
        outcome = night.call(promote, "promote", decision, models, night.home, tracking, config.name)
        log_exams(tracking, exams)
        tracking.log(cluster.figures(night.folder), 0)
        log_rankings(tracking, night.folder, models)
        rounds.retention.remove(keep=set(models.values()))
        shutil.rmtree(night.folder / "state", ignore_errors=True)
        night.close()  # before the night counts as finished, because shutting down workers takes seconds
        arguments = (night.folder, outcome, number, monitor.finish(), links, tracking)
        summary = night.call(report, "report", *arguments, after=night.edges.last)
        post_report((night.folder / SHORT_REPORT).read_text())
    except (*UNREACHABLE, AliasesHeldError) as error:
        if disk_is_full(error):
            raise
        raise _unfinished(night, decision, number, monitor.alarms.sentences, links, error) from error
    try:
        registry = Registry(tracking.client, config.name)
        night.call(prune, "prune", night.home, config.keep_nights, registry, after=[summary])
    except Exception as error:  # the night is finished, and the next one will prune
        log.warning("nothing was pruned: %s", error)
    return summary


def _unfinished(
    night: Night, decision: Artifact, rounds: int, alarms: Sequence[str], links: Mapping[str, str], error: Exception
) -> NightError:
    """Write the report of a night that cannot move the registry's aliases. Return the error that ends it.

    The error message names the command that finishes the night without repeating committed work.
    """
    outcome = night.folder / OUTCOME
    if outcome.exists():
        found = json.loads(outcome.read_text())
        left, stands = "the night's last figures and this report may be missing in it", "its decision is carried out"
    else:
        found = decision.read_json("decision.json") | {"promote": False}
        left, stands = "the promotion is not finished", "its decision stands"
    why, then = "MLflow does not answer", "MLflow is back"
    if isinstance(error, AliasesHeldError):
        why, then = "another `nightschool promote` or `rollback` does not end", "it has ended"
    sentence = (
        f"{why}, so {left}. The night is safe, and {stands}; once {then}, finish it "
        f"with: {resume_command(night.folder)}"
    )
    write_report(night.folder, summarise(night.folder, found, rounds, [sentence, *alarms], links), found)
    post_report((night.folder / SHORT_REPORT).read_text())
    return NightError(sentence)


def prefect_page() -> str:
    """Return the URL of the flow run's page in Prefect, without the password that the API URL may contain."""
    return redact(flow_run.get_flow_run_ui_url() or "")


def _links(tracking: Tracking) -> dict[str, str]:
    """Return the night's URLs in MLflow and Prefect. Local URLs work only while `nightschool ui` or `services` runs."""
    server = tracking.uri.rstrip("/") if tracking.uri.startswith("http") else HERE.url(MLFLOW_PORT)
    return {"mlflow": f"{server}/{tracking.run_path}", "prefect": prefect_page()}
