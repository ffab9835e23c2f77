"""Is what an owner teaches by day still there on Friday? Five days in the classroom, each followed by a night.

    python -m benchmarks.owner_week [--starts champion latest day] [--weeks short turns] [--seeds 1 2] [--days 5]

By day, an owner who likes short answers teaches in the real classroom: picks, and corrections to an answer's first
sentence. The night learns these lessons, then practises arithmetic for three rounds, as many as fit on a slow CPU. On
Monday, the student is the starter after a night's lesson in arithmetic. `starts` are the values of `start_from`. In the
week `turns`, the owner likes questions back from the fourth day on. Each morning and evening, answers to questions that
are never taught are rated by both tastes. Each week is a line in docs/owner-week.jsonl and is not repeated; an
interrupted one begins with the day that is missing. Writes the table in docs/teaching.md.
"""

import json
import random
import re
import statistics
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from benchmarks.inputs.champion import home_with_champion
from benchmarks.inputs.options import options
from benchmarks.inputs.owners import GOOD, QUESTIONS, TASTES, corrected
from benchmarks.inputs.school import make
from benchmarks.inputs.starter import starter
from benchmarks.machine.classroom import Classroom, classroom
from benchmarks.nights.learning_runs import distilled
from benchmarks.nights.whole import date_of, whole_night
from benchmarks.outputs.page import fill, markdown
from benchmarks.outputs.records import sweep
from flows.teaching.answers import DAY
from tasks.evaluation.english import mean_nats

RESULTS, PAGE, NAME = Path("docs/owner-week.jsonl"), Path("docs/teaching.md"), "benchmarks.owner_week"
HOMES = Path("school/benchmarks/owner-week")
STARTS = ("champion", "latest", "day")
WEEKS: Mapping[str, Sequence[str]] = {"short": ["short"] * 5, "turns": ["short"] * 3 + ["asks back"] * 2}
FIRST = "2026-01-05"  # a Monday
LAST = "2026-02"  # later files of the journal are not the week's
LESSONS, CORRECTED = 30, 6  # lessons a day; so many of them are corrections
UNSEEN = 24  # questions at each look, with five answers each
NIGHT = ("budget_minutes=null", "stages=[lessons, {grpo: 3}]", "day.generated_traces=0")
Day = dict[str, Any]


def main() -> None:
    """Do the missing weeks, and write the table of all."""
    given = options(__doc__, {"--starts": STARTS, "--weeks": ["short"], "--seeds": [1, 2], "--days": 5}, weeks=WEEKS)
    runs = sweep(RESULTS, teach_week, week=given.weeks, start=given.starts, seed=given.seeds, days=[given.days])
    fill(PAGE, NAME, table(runs))


def teach_week(week: str, start: str, seed: int, days: int) -> dict[str, Any]:
    """Teach by day and sleep by night. Return the tastes' rates at each look, and the nights' outcomes."""
    home, chance = HOMES / f"{week}-{start}-{seed}", random.Random(seed)
    questions = chance.sample(QUESTIONS, len(QUESTIONS))
    unseen, asked = questions[:UNSEEN], questions[UNSEEN:]
    notes = home / "days.json"
    done: list[Day] = json.loads(notes.read_text()) if notes.exists() else []
    if not done:
        home_with_champion(home, distilled(starter(), seed, make(HOMES).resolve() / f"student-{seed}"))
    for number in range(len(done), days):
        date = date_of(number, FIRST)
        by_day = home / f"day-{number}.json"
        if not by_day.exists():
            for half in [*of_today(home / "journal"), home / "journal" / f"{date}.jsonl"]:  # of an interrupted day
                half.unlink(missing_ok=True)
            taste, chance = WEEKS[week][number], random.Random(f"{seed} {number}")
            with classroom(home, ()) as room:
                morning = rates(room, unseen)
                for lesson, question in enumerate(chance.sample(asked, LESSONS)):
                    teach(room, question, taste, corrects=lesson % (LESSONS // CORRECTED) == 0)
                evening = rates(room, unseen)
            date_back(home / "journal", date)
            by_day.write_text(json.dumps({"morning": morning, "evening": evening}))
        done.append(json.loads(by_day.read_text()) | {"night": night(home, start, seed, date)})
        notes.write_text(json.dumps(done))
    with classroom(home, ()) as room:
        after = rates(room, unseen)
    return {"run": done, "after": after}


def date_back(journal: Path, date: str) -> None:
    """Give today's lessons the date of the night that will learn them, which refuses lines from its future."""
    today = of_today(journal)
    lines = "".join(file.read_text(encoding="utf-8") for file in today)
    (journal / f"{date}.jsonl").write_text(re.sub(r'"at":"[\d-]+', f'"at":"{date}', lines), encoding="utf-8")
    for file in today:
        file.unlink()


def of_today(journal: Path) -> list[Path]:
    """Return the files with lessons that still have the date of the day on which the benchmark runs."""
    return [file for file in sorted(journal.glob("*.jsonl")) if file.stem > LAST]


def teach(room: Classroom, question: str, taste: str, *, corrects: bool) -> None:
    """Ask a question. Correct the first answer to its first sentence, or pick the best answer by the taste."""
    answers = room.ask(question)
    room.settle()
    if len(answers) < 2:
        return
    first = answers[0]["text"].strip()
    if corrects and (better := corrected(first, taste)) != first:
        lesson = {"kind": "correct", "answer": answers[0]["id"], "text": better}
        room.client.post("/api/lesson", json=lesson)  # refused if it corrects nothing
    else:
        room.teach("pick", max(answers, key=lambda answer: TASTES[taste](answer["text"])))
    room.settle()


def rates(room: Classroom, questions: Sequence[str]) -> dict[str, float]:
    """Return the share of the day copy's answers that each taste likes: the mean over questions.

    The page tells who wrote which answer only after a pick. Nothing is learned from this one, and it is undone.
    """
    room.live(False)
    shares: dict[str, list[float]] = {"short": [], "asks back": []}
    for question in questions:
        answers, authors = room.ask(question), dict[str, list[str]]()
        if len(answers) > 1:
            lesson = room.teach("pick", answers[0])
            authors = lesson["authors"]
            room.undo(lesson["lesson"])
        alone = not any(DAY in policies for policies in authors.values())  # nothing learned yet, or one answer for all
        texts = [
            answer["text"]
            for answer in answers
            for author in authors.get(answer["id"], [DAY])
            if alone or author == DAY
        ]
        for taste, found in shares.items() if texts else ():
            found.append(statistics.mean(GOOD[taste](text) for text in texts))
    room.live(True)
    return {taste: statistics.mean(found) for taste, found in shares.items()}


def night(home: Path, start: str, seed: int, date: str) -> dict[str, Any]:
    """Run the night after a day. Return its outcome."""
    found = whole_night(home, *NIGHT, f"start_from={start}", f"seed={seed}", date=date)
    return {
        "decision": found["decision"],
        "reasons": found["reasons"],
        "minutes": found["minutes"],
        "arithmetic": [found["accuracy"][role]["accuracy"] for role in ("champion", "candidate")],
        "instructions": found["benchmarks"].get("instructions"),
        "english": [mean_nats(found["folder"] / "evaluate" / role) for role in ("champion", "candidate")],
    }


def table(runs: Sequence[Mapping[str, Any]]) -> str:
    """Return a Markdown table: the rate of each day's taste, morning and evening, those of all at the end, the nights.

    Arithmetic is compared within a night, because its exam becomes harder from night to night.
    """
    rows = []
    for run in runs:
        days, tastes = run["run"], WEEKS[run["week"]][: len(run["run"])]
        looks = zip(days, tastes, strict=True)
        rated = "; ".join(f"{day['morning'][taste]:.2f} → {day['evening'][taste]:.2f}" for day, taste in looks)
        nights = ", ".join(day["night"]["decision"] for day in days)
        exams = (day["night"]["arithmetic"] for day in days)
        gains = ", ".join(f"{candidate - champion:+.2f}" for champion, candidate in exams)
        minutes = ", ".join("–" if (spent := day["night"]["minutes"]) is None else f"{spent:.0f}" for day in days)
        after = ", ".join(f"{run['after'][taste]:.2f}" for taste in dict.fromkeys(tastes))
        rows.append([run["week"], run["start"], run["seed"], rated, after, nights, gains, minutes])
    head = "week | `start_from` | seed | liked answers, morning → evening by day | after the last night | nights"
    return markdown(f"{head} | arithmetic, candidate − champion | minutes", rows)


if __name__ == "__main__":
    main()
