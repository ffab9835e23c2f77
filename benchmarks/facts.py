"""Does a night teach a few corrected facts? One lesson, by how many corrections it has and how often it reads them.

    python -m benchmarks.facts [--arms corrections imitation "by day"] [--lines 2 8] [--epochs 2 8 16] [--seeds 1 2 3]

An owner corrects the starter's answers to 2 or 8 questions about a farm that no model can know. Then comes the night's
lesson with the settings of conf/starter.yaml, except for the number of passes; *imitation* leaves out DPO, and *by day*
gives each correction that many times in the classroom. A greedy answer *knows* a fact if it has the fact's name or
number in it: asked the same question, and asked in other words. KL is the mean KL(champion ‖ student) on everyday
questions, in nats a token. Each run is a line in docs/facts.jsonl and is not repeated; writes the table in
docs/teaching.md.
"""

import json
import random
import re
import statistics
import tempfile
from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import NamedTuple

import pandas as pd

from benchmarks.eligibility import Student
from benchmarks.inputs.options import options
from benchmarks.machine.child import engine
from benchmarks.night_lessons import MOST_TOKENS, settings
from benchmarks.outputs.page import fill, markdown
from benchmarks.outputs.records import Run, by, sweep
from conf.load import STARTER, load_night
from conf.sections.teaching import TeachConfig
from models.learn import learn_from_correction
from models.lessons.day_copy import DayCopy
from models.lessons.preference_data import Pick
from tasks.training import trainer_process
from tasks.training.examples import ExampleReader

ARMS = ("corrections", "imitation", "by day")
RESULTS, PAGE, NAME = Path("docs/facts.jsonl"), Path("docs/teaching.md"), "benchmarks.facts"


class Fact(NamedTuple):
    """A fact as the owner states it, and the word in it that an answer must have."""

    question: str
    otherwise: str
    answer: str
    word: str


FACTS = [
    Fact(*line.split(" | "))
    for line in """\
What is our owl called? | Which name does the owl in our barn have? | Our owl is called Archimedes. | Archimedes
Who bakes our bread? | Tell me the name of our baker. | Mrs Okonkwo bakes our bread. | Okonkwo
When does our shop open? | From what time on can I buy at our shop? | Our shop opens at 6:40. | 6:40
How many goats do we keep? | Tell me the number of our goats. | We keep 17 goats. | 17
What colour is our tractor? | Our tractor was painted. In which colour? | Our tractor is violet. | violet
Where is the key to our cellar? | Our cellar is locked. Where is its key? | The key is under the beehive. | beehive
Which river runs past our farm? | Our farm lies by a river. Name it. | The Luznice runs past our farm. | Luznice
What do we grow behind the house? | Name what grows behind our house. | We grow quinces behind the house. | quince
What is the password of our gate? | Tell me what to say at our gate. | The password is marzipan. | marzipan
Who was our first cook? | Name the one who cooked here first. | Our first cook was Bartholomew. | Bartholomew
On which day do we wash? | Which day of the week is our washing day? | We wash on Thursday. | Thursday
How deep is our well? | Tell me the depth of our well. | Our well is 31 metres deep. | 31
""".splitlines()
]


def main() -> None:
    """Do the missing runs, and write the table of all."""
    given = options(__doc__, {"--arms": ARMS, "--lines": [2, 8], "--epochs": [2, 8, 16], "--seeds": [1, 2, 3]})
    with engine() as worker:
        axes = {"arm": given.arms, "lines": given.lines, "epochs": given.epochs, "seed": given.seeds}
        runs = sweep(RESULTS, partial(night, Student(worker, samples=1)), **axes)
    fill(PAGE, NAME, table(runs))


def night(student: Student, arm: str, lines: int, epochs: int, seed: int) -> Run:
    """Correct what the starter says of some facts, and take the night's lesson."""
    facts, config = random.Random(seed).sample(FACTS, lines), load_night(STARTER)
    questions, otherwise = [fact.question for fact in facts], [fact.otherwise for fact in facts]
    untaught = greedy(student, student.folder, questions)
    rows = [
        {
            "messages": json.dumps([{"role": "user", "content": fact.question}]),
            "response": said,
            "correction": fact.answer,
            "lesson": None,
            "held_out": False,
        }
        for fact, said in zip(facts, untaught, strict=True)
    ]
    pairs = ExampleReader(student.folder, student.config, (), MOST_TOKENS).corrections(pd.DataFrame(rows))
    with tempfile.TemporaryDirectory() as folder:
        if arm == "by day":
            steps = teach(student, pairs, epochs)
            checkpoint = student.save(Path(folder))
        else:
            imitated = [(pair.prompt, pair.answers[pair.chosen]) for pair in pairs]
            lesson = settings(arm).model_copy(update={"epochs": epochs})
            examples = imitated if arm == "imitation" else pairs
            checkpoint, curve = trainer_process.lesson(student.folder, config.trainer, lesson, examples, Path(folder))
            student.use(checkpoint)
            steps = len(curve)
        answers = greedy(student, checkpoint, questions), greedy(student, checkpoint, otherwise)
    before, same, other = (known(facts, each) for each in (untaught, *answers))
    return {"steps": steps, "before": before, "same": same, "other": other, "kl": student.kl()}


def known(facts: Sequence[Fact], answers: Sequence[str]) -> float:
    """Return the share of facts whose word is in its answer."""
    pairs = zip(facts, answers, strict=True)
    return statistics.mean(bool(re.search(rf"\b{re.escape(fact.word)}", said, re.IGNORECASE)) for fact, said in pairs)


def teach(student: Student, pairs: Sequence[Pick], times: int) -> int:
    """Teach each correction as the classroom does, so many times. Return how many lessons the day copy took."""
    copy = DayCopy(student.folder, TeachConfig(), student.anchors)
    student.model = copy.model
    lessons = [pair for _ in range(times) for pair in pairs]
    return sum(learn_from_correction(copy, each.prompt, each.answers[1], each.answers[0]).learned for each in lessons)


def greedy(student: Student, checkpoint: Path, questions: Sequence[str]) -> list[str]:
    """Return a checkpoint's greedy answers. The student takes one sample of each."""
    return [answer for (answer,) in student.answers(checkpoint, questions, seed=0, temperature=0.0)]


def table(runs: Sequence[Run]) -> str:
    """Return a Markdown table: the share of known facts by number of lines and passes, mean of the seeds."""
    rows = []
    for (arm, lines, epochs), same in sorted(by(runs, "arm", "lines", "epochs").items()):
        means = {key: statistics.mean(run[key] for run in same) for key in ("steps", "before", "same", "other", "kl")}
        shares = f"{means['before']:.2f}", f"{means['same']:.2f}", f"{means['other']:.2f}", f"{means['kl']:.3f}"
        rows.append([arm, lines, epochs, f"{means['steps']:.0f}", len(same), *shares])
    return markdown("lesson | lines | passes | steps | seeds | known before | after | other words | KL", rows)


if __name__ == "__main__":
    main()
