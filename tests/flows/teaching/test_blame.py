"""Why it says that: of three lessons, the one that matters is found, and the champion before is there, too.

What no snapshot tells apart is one step, which blames no lesson.
"""

import json
from typing import Any

import pytest

from conf.load import STARTER
from conf.storage.journal import LESSON, LIVE, entry_of
from conf.storage.journal_file import append
from flows.commands.blame import blame
from tasks.teaching import day_learner
from tests.flows.serving.conftest import SETTINGS, School
from tests.tasks.doubles.workers import InProcessWorker

MORE = ["learned_reward.owner_share=0", "teach.step_nats=2", "teach.max_answer_tokens=4"]
ASKED = {"messages": [{"role": "user", "content": "7 + 5?"}]}
OTHER = {"messages": [{"role": "user", "content": "What do owls eat at night?"}]}
LESSONS: list[dict[str, Any]] = [
    {"kind": "feedback", **OTHER, "response": "Nobody knows.", "value": 1},
    {"kind": "feedback", **ASKED, "response": "It is 12.", "value": 1},
    {"kind": "feedback", **OTHER, "response": "They eat mice.", "value": 1},
]


@pytest.mark.slow
def test_the_lesson_that_matters_is_found(
    served: School, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr("flows.teaching.day.Worker", lambda *_: InProcessWorker())  # a process takes long to start
    served.registry.promote(served.second.version, "night 2026-11-21")
    append(served.home.journal, [entry_of({LESSON: str(n), LIVE: True, **each}) for n, each in enumerate(LESSONS)])

    def steps(answer: str | None) -> dict[str, Any]:
        blame("7 + 5?", answer, STARTER, [*SETTINGS, *MORE], as_json=True)
        return json.loads(capsys.readouterr().out)

    found = steps("It is 12.")["steps"]
    assert [step["kind"] for step in found] == ["champion", "champion", "praise", "praise", "praise"]
    assert [step["lesson"] for step in found] == ["", "", "0", "1", "2"]
    assert found[0]["what"] == "promote"  # what made the first champion serve
    lessons = {step["lesson"]: step["moved"] for step in found[2:]}
    assert max(lessons, key=lambda name: abs(lessons[name])) == "1"
    assert lessons["1"] > 0.3  # nats; the intended 2 exceed a limit
    own = steps(None)  # cut off after four tokens
    monkeypatch.setattr(day_learner, "SNAPSHOTS", 2)
    finished = steps(own["answer"])["steps"]
    assert finished[-1]["logprob"] < own["steps"][-1]["logprob"] - 0.1  # it counts the end token, too
    assert [step["lesson"] for step in finished] == ["", "", "", "2"]
    assert (finished[2]["kind"], finished[2]["what"]) == ("lessons", "today's first 2 lessons")
