"""A night whose registry does not answer when it would promote: its report says so, and how to finish it."""

import shlex
from collections.abc import Mapping, Sequence

from conf.home import NightError
from flows.night import Night
from models.durable import write_atomically
from tasks.prefect_pages import show_text
from tasks.report import summarise
from tasks.report_page import render, render_markdown
from tasks.stage import Artifact


def left_open(
    night: Night, decision: Artifact, rounds: int, alarms: Sequence[str], links: Mapping[str, str]
) -> NightError:
    """The error that ends such a night; before it, the morning report is written without the registry.

    The night is not finished: the command in the sentence carries out the decision that stands, and nothing else.
    """
    again = shlex.join(["nightschool", "night", "--config", str(night.folder / "config.yaml"), "--date", night.date])
    sentence = (
        "MLflow's registry does not answer, so that the promotion is not finished. The night is safe, and its decision "
        f"stands; once the registry is back, finish it with: {again}"
    )
    found = decision.read_json("decision.json")
    open_still = found | {"promote": False, "reasons": [sentence, *found["reasons"]]}
    summary = summarise(night.folder, open_still, rounds, alarms, links)
    write_atomically(night.folder / "report.html", render(night.folder, summary))
    show_text("morning-report", render_markdown(summary), f"The night of {night.date}")
    return NightError(sentence)
