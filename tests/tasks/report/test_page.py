"""The morning report: what it says, what it leaves out, and that nothing in it can run, load or break the page."""

import html
import json
import re
import shutil
from html.parser import HTMLParser
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import pytest

from tasks.report.markdown import headline, render_markdown
from tasks.report.page import render
from tasks.report.queries import (
    benchmark_verdicts,
    excluded_problems,
    flipped_answers,
    kind_history,
    lesson_losses,
    sampled_answers,
    solve_rates,
    ungraded_answers,
    verdict_counts,
    verdict_table,
    verdicts_by_round,
)
from tasks.stage import commit
from tasks.tables import EVALUATIONS, PROMPTS, SCORES, SOLVE_RATES, read_table, write_table
from tests.tasks.committed_tables import prompt, score, solve_rate, write_stage
from tests.tasks.night_folder import write_night

HOSTILE = "<script>alert(1)</script><img src=x onerror=alert(2)></pre>&amp;\x00\ud800 "
VOID = {"meta", "br", "img", "link", "input", "hr"}


class Page(HTMLParser):
    """Every tag's name and attributes, and whether each that was opened is closed in order."""

    def __init__(self, page: str) -> None:
        super().__init__()
        self.tags: list[tuple[str, dict[str, str | None]]] = []
        self.open: list[str] = []
        self.feed(page)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append((tag, dict(attrs)))
        if tag not in VOID:
            self.open.append(tag)

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append((tag, dict(attrs)))

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag


@pytest.fixture(scope="module")
def night(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, dict[str, Any]]:
    folder = tmp_path_factory.mktemp("nights") / "2026-11-20"
    return folder, write_night(folder)


def sections(page: str) -> list[str]:
    return re.findall(r"<h2[^>]*>(.*?)</h2>", page) + re.findall(r"<h3>(.*?)</h3>", page)


def test_several_lessons_are_one_curve_and_the_teachers_rounds_a_picture(tmp_path: Path) -> None:
    for place, losses in {
        "distill-10": [1.0],
        "distill": [4.0, 3.0],
        "distill-2": [2.0],
        "self_distill": [2.5],
    }.items():
        (tmp_path / place).mkdir()
        (tmp_path / place / "curve.json").write_text(json.dumps([{"step": n, "loss": x} for n, x in enumerate(losses)]))
        (tmp_path / place / "manifest.json").touch()
    losses = lesson_losses(tmp_path)
    assert list(losses) == [4.0, 3.0, 2.5, 2.0, 1.0]
    assert list(losses.index) == [1, 2, 3, 4, 5]
    for number, figures in enumerate([{"reward": 0.5}, {"reward": 0.5, "teacher_kl": 1.25}, {"teacher_kl": 0.5}], 1):
        (tmp_path / f"round-0{number}" / "checkpoint").mkdir(parents=True)
        (tmp_path / f"round-0{number}" / "checkpoint" / "metrics.json").write_text(json.dumps(figures))
        (tmp_path / f"round-0{number}" / "checkpoint" / "manifest.json").touch()
    page = render(tmp_path, {"night": "2026-11-20"})
    assert "from 1.25 to 0.50 nats" in page
    assert "from 4.00 to 1.00" in page


def test_the_first_lines_say_what_how_much_how_sure_and_what_to_do(night: tuple[Path, dict[str, Any]]) -> None:
    folder, summary = night
    page = render(folder, summary)
    found = json.loads((folder / "decide/decision.json").read_text())["comparisons"]["candidate"]["arithmetic-1-2"]
    first = page[page.index("<header>") : page.index("</header>")]
    assert "The candidate was promoted." in first
    assert "20 November 2026" in first
    assert "checkpoint, cafe42cafe42." in first
    assert f"+{found['difference']:.2f} on arithmetic-1-2: it solves {found['after']['accuracy']:.2f} of 400" in first
    assert f"interval +{found['low']:.2f} to +{found['high']:.2f}; {found['gained']} answers became right" in first
    assert "p &lt; 0.0001" in first
    assert "nightschool rollback" in first


def test_every_number_of_the_exam_is_on_the_page(night: tuple[Path, dict[str, Any]]) -> None:
    folder, summary = night
    page = render(folder, summary)
    for part, three in summary["benchmarks"].items():
        row = re.search(rf'<tr><th scope="row">{part}<small>.*?</tr>', page, re.S)
        assert row is not None
        for one in three.values():
            assert f"{one['accuracy']:.2f}<small>{one['low']:.2f}–{one['high']:.2f}" in row.group()
    for reason in summary["reasons"]:
        assert html.escape(reason).replace("&#x27;", "&#39;") in page
    assert "190 worked solutions" in page
    assert "seed: 1" in page


def test_a_kept_champion_and_its_alarms(night: tuple[Path, dict[str, Any]]) -> None:
    folder, summary = night
    page = render(folder, summary | {"decision": "kept", "alarms": ["Disk <full>", "No signal"]})
    assert "The champion stays." in page
    assert "starts with the champion, c0ffeec0ffee" in page
    assert "Read the 2 alarms first." in page
    assert "<li>Disk &lt;full&gt;</li>" in page
    assert page.index("Disk &lt;full&gt;") < page.index("What changed")
    assert 'id="alarms"' not in render(folder, summary)


def test_the_first_lines_know_who_really_serves_and_what_a_dry_run_left(night: tuple[Path, dict[str, Any]]) -> None:
    folder, summary = night
    page = render(folder, summary | {"serving": "f00df00df00df00d"})
    assert "starts with f00df00df00d, to which the alias was moved meanwhile" in page
    page = render(folder, summary | {"decision": "kept", "withheld": "nightschool promote 3 --config c.yaml"})
    assert "to carry out the promotion: nightschool promote 3 --config c.yaml" in page


def test_the_page_has_all_its_parts_and_is_well_formed(night: tuple[Path, dict[str, Any]]) -> None:
    page = render(*night)
    assert [part for part in sections(page) if part != "The decision: promoted"] == [
        "The exam",
        "What each part taught",
        "The night",
        "10 answers of the last round",
        "Exam answers that changed",
        "Verdicts",
        "Where this comes from",
        "Learning curve",
        "Parts of the reward",
        "Verdicts, by benchmark",
        "Solved, by kind of problem",
        "Groups with signal",
        "Gradient norm",
        "Length of the completions",
        "Entropy and mismatch",
        "Distillation",
        "Where the time went",
        "Became right",
        "Became wrong",
        "By benchmark",
    ]
    parsed = Page(page)
    assert not parsed.open
    ids = [attributes["id"] for _, attributes in parsed.tags if "id" in attributes]
    assert len(ids) == len(set(ids))


def test_pictures_have_a_text_and_take_the_pages_colours(night: tuple[Path, dict[str, Any]]) -> None:
    pictures = re.findall(r"<svg.*?</svg>", render(*night), re.S)
    assert len(pictures) == 10
    for picture in pictures:
        root = ElementTree.fromstring(picture.replace("<svg", '<svg xmlns:xlink="x"', 1))
        assert root.get("role") == "img"
        assert root.get("aria-label")
        assert root.find(".//text") is not None
        assert "currentColor" in picture
        assert not re.search(r"(fill|stroke): #", picture)


def test_the_figures_that_can_be_pointed_at_stand_in_a_table_as_well(night: tuple[Path, dict[str, Any]]) -> None:
    folder, summary = night
    page = render(folder, summary)
    reward = json.loads((folder / "round-02/checkpoint/metrics.json").read_text())["reward"]
    (curve,) = [one for one in re.findall(r"<svg.*?</svg>", page, re.S) if 'aria-label="Learning curve' in one]
    told = [re.findall(r"<tspan[^>]*>(.*?)</tspan>", one) for one in re.findall(r'<g class="told">(.*?)</g>', curve)]
    assert told[1] == ["round 2", f"mean reward {reward:.3f}", "quiz 0.340"]
    assert [len(lines) for lines in told] == [2, 3, 2]  # every other round has a quiz
    table = page[page.index("<summary>The figures, round by round") :]
    assert f'<tr><th scope="row">2</th><td>{reward:.3f}</td>' in table


def test_what_the_decision_risks_and_what_the_vault_says(tmp_path: Path) -> None:
    summary = write_night(tmp_path)
    assert "by luck" not in render(tmp_path, summary)
    file = tmp_path / "decide" / "decision.json"
    more = {"alpha": 0.0125, "false_promotions_a_year": 4.5625, "alpha_spending": "fixed", "spent_alpha": 0.0125}
    file.write_text(json.dumps(json.loads(file.read_text()) | more | {"targets": ["arithmetic-1-2", "arithmetic-3"]}))
    commit(file.parent, "decide", {}, 0.1)
    page = " ".join(render(tmp_path, summary).split())
    assert "α of 0.0125, candidates that are no better are promoted by luck at most 4.6 times a year." in page
    assert "α is spent" not in page
    assert "arithmetic-3<small>target, 100 problems" in page
    file.write_text(json.dumps(json.loads(file.read_text()) | {"alpha_spending": "quadratic", "exams_sat": 3}))
    comparison = {"n": 50, "before": {"accuracy": 0.1}, "after": {"accuracy": 0.3}, "difference": 0.2}
    vault = tmp_path / "vault" / "comparison"
    vault.mkdir(parents=True)
    (vault / "vault.json").write_text(json.dumps({"gsm8k": comparison | {"low": 0.05, "high": 0.34}}))
    commit(vault, "vault", {}, 0.1)
    commit(file.parent, "decide", {}, 0.1)
    page = " ".join(render(tmp_path, summary).split())
    assert "α is spent: 0.0125 of it in 3 exams so far." in page
    assert (
        "The vault, 50 problems of gsm8k that decide nothing: who serves from now on solves 0.30 of them, the first "
        "student 0.10: +0.20 (+0.05 to +0.34)."
    ) in page


@pytest.mark.parametrize("theme", ["light", "dark", "print"])
def test_every_colour_can_be_read_on_its_ground(theme: str, night: tuple[Path, dict[str, Any]]) -> None:
    """The contrast of text, WCAG 2.2, 1.4.3: at least 4.5; drawn lines have it too, where 3 would do (1.4.11)."""
    blocks = re.findall(r":root \{(.*?)\}", render(*night), re.S)
    found = re.findall(r"--(\w+): (#[0-9a-f]{3,6});", blocks[["light", "dark", "print"].index(theme)])
    colours = dict(found)
    assert colours.keys() == {"page", "ink", "muted", "rule", "panel", "first", "second", "good", "bad"}

    def luminance(colour: str) -> float:
        long = colour[1:] if len(colour) == 7 else "".join(2 * digit for digit in colour[1:])
        parts = [int(long[at : at + 2], 16) / 255 for at in (0, 2, 4)]
        linear = [part / 12.92 if part <= 0.04045 else ((part + 0.055) / 1.055) ** 2.4 for part in parts]
        return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]

    for ground in ("page", "panel"):
        for name in ("ink", "muted", "first", "second", "good", "bad"):
            one, other = sorted((luminance(colours[name]), luminance(colours[ground])))
            assert (other + 0.05) / (one + 0.05) >= 4.5, (name, ground)


def test_nothing_is_loaded_and_only_the_given_links_lead_away(night: tuple[Path, dict[str, Any]]) -> None:
    folder, summary = night
    page = render(folder, summary)
    assert sorted(set(re.findall(r"https?://[^\"<\s]+", page))) == sorted(summary["links"].values())
    tags = Page(page).tags
    assert not {tag for tag, _ in tags} & {"script", "link", "img", "iframe", "object"}
    assert all(not attributes.keys() & {"src", "srcset", "onload", "onerror"} for _, attributes in tags)
    assert "default-src 'none'" in page
    unsafe = render(folder, summary | {"links": {"mlflow": "javascript:alert(1)"}})
    assert "javascript" not in unsafe


def test_what_a_model_wrote_is_text(tmp_path: Path) -> None:
    summary = write_night(tmp_path / "night", rounds=1, hostile=HOSTILE.replace("\ud800", ""))
    page = render(tmp_path / "night", summary)
    assert "<script" not in page
    assert "&lt;script&gt;alert(1)&lt;/script&gt;&lt;img src=x" in page
    assert not Page(page).open


def test_the_page_can_be_written_whatever_the_text(tmp_path: Path) -> None:
    page = render(tmp_path, {"night": "2026-11-20", "alarms": [HOSTILE]})
    (tmp_path / "report.html").write_text(page, encoding="utf-8")
    assert "<script" not in page


def test_five_right_and_five_wrong_answers_of_different_problems(tmp_path: Path) -> None:
    write_night(tmp_path, rounds=2, groups=30, size=4, solved=0.5)
    answers = sampled_answers(tmp_path)
    assert [answer.verdict == "correct" for answer in answers] == [True] * 5 + [False] * 5
    assert len({answer.question for answer in answers}) == 10
    assert all((answer.reward == 1.0) == answer.text.endswith("#### 12") for answer in answers)


@pytest.mark.parametrize(("solved", "right"), [(0.0, 0), (1.0, 10)])
def test_ten_answers_where_all_are_right_or_all_wrong(tmp_path: Path, solved: float, right: int) -> None:
    write_night(tmp_path, rounds=1, solved=solved)
    assert [answer.verdict == "correct" for answer in sampled_answers(tmp_path)] == [True] * right + [False] * (
        10 - right
    )


def test_flips_are_five_each_and_are_flips(night: tuple[Path, dict[str, Any]]) -> None:
    flips = flipped_answers(night[0])
    assert [flip.gained for flip in flips] == [True] * 5 + [False] * (len(flips) - 5)
    for flip in flips:
        number = int(flip.question.split()[2])
        assert flip.after.endswith(f"#### {number + 3}") is flip.gained
        assert flip.before.endswith(f"#### {number + 3}") is not flip.gained


def test_solve_rates_and_verdicts_are_those_of_the_tables(tmp_path: Path) -> None:
    write_night(tmp_path, rounds=2, groups=8, size=50, solved=0.5)
    rates, tried = solve_rates(tmp_path)
    assert rates.shape == (8, 2)
    assert tried.sum() == 800
    assert rates.mean().tolist() == pytest.approx([0.25, 0.5], abs=0.06)
    counts = verdict_counts(tmp_path)
    assert counts.loc["correct", "training"] == round(rates.mean().sum() * 400)
    assert counts["candidate"].sum() == 600


@pytest.mark.parametrize(
    ("absent", "gone"),
    [
        (["distill"], {"What each part taught", "Distillation"}),
        (["evaluate", "decide"], {"Exam answers that changed", "Became right", "Became wrong"}),
        (
            ["round-01", "round-02", "round-03"],
            {
                "10 answers of the last round",
                "Learning curve",
                "Parts of the reward",
                "Verdicts, by benchmark",
                "Solved, by kind of problem",
                "Groups with signal",
                "Gradient norm",
                "Length of the completions",
                "Entropy and mismatch",
            },
        ),
        (["config.yaml", "fit_reward_model"], set()),
    ],
)
def test_what_is_absent_is_left_out(tmp_path: Path, absent: list[str], gone: set[str]) -> None:
    summary = write_night(tmp_path)
    before = set(sections(render(tmp_path, summary)))
    for name in absent:
        shutil.rmtree(tmp_path / name) if (tmp_path / name).is_dir() else (tmp_path / name).unlink()
    assert before - set(sections(render(tmp_path, summary))) == gone


def test_a_stage_that_was_not_committed_is_not_there(tmp_path: Path) -> None:
    summary = write_night(tmp_path)
    (tmp_path / "distill/manifest.json").unlink()
    (tmp_path / "distill/curve.json").write_text("[{")
    assert "Distillation" not in sections(render(tmp_path, summary))


def test_a_round_whose_step_was_skipped_or_not_finite(tmp_path: Path) -> None:
    summary = write_night(tmp_path)
    file = tmp_path / "round-02/checkpoint/metrics.json"
    metrics = json.loads(file.read_text())
    del metrics["entropy"]
    file.write_text(json.dumps(metrics | {"grad_norm": float("inf"), "reward": float("nan")}))
    assert {"Gradient norm", "Entropy and mismatch", "Learning curve"} <= set(sections(render(tmp_path, summary)))


def test_an_empty_night_is_still_a_page(tmp_path: Path) -> None:
    page = render(tmp_path, {"night": "2026-11-20"})
    assert "No exam was sat." in page
    assert sections(page) == ["Where this comes from"]
    assert not Page(page).open


def test_the_stages_are_drawn_in_the_nights_order(night: tuple[Path, dict[str, Any]]) -> None:
    folder, summary = night
    shuffled = dict(sorted(summary["seconds"].items())) | {"zzz": 1.0}
    page = render(folder, summary | {"seconds": shuffled})
    assert re.findall(r">([a-z ]+?)  [0-9.]+ (?:s|min \d\d s)<", page) == [
        *("freeze journal", "distill", "fit reward model", "select prompts", "sample", "score", "update", "evaluate"),
        "zzz",
    ]


def test_the_same_night_gives_the_same_page(night: tuple[Path, dict[str, Any]]) -> None:
    assert render(*night) == render(*night)


def test_markdown_is_a_dozen_lines_with_the_same_numbers(night: tuple[Path, dict[str, Any]]) -> None:
    _, summary = night
    text = render_markdown(summary | {"alarms": ["Disk <b>full\n| now"]})
    one = summary["benchmarks"]["arithmetic-1-2"]["candidate"]
    assert text.startswith("# Night of 20 November 2026: the candidate was promoted\n")
    assert f"{one['accuracy']:.2f} ({one['low']:.2f}–{one['high']:.2f}) |" in text
    assert "| exam | n | champion | after distillation | candidate |" in text
    assert r"- **Alarm:** Disk \<b>full | now" in text
    assert text.index("Alarm") < text.index("| exam |")
    assert all(f"- {reason}" in text for reason in summary["reasons"])
    assert "[mlflow](http://localhost:5000/#/runs/1)" in text
    assert len(text.splitlines()) < 24
    assert "No exam" not in render_markdown({"night": "early"})


def test_the_groups_of_the_night_are_told(night: tuple[Path, dict[str, Any]]) -> None:
    page = render(*night)
    told = "In the night: 30 groups sampled, 12 with signal, 6 drawn in place of others, 3 refills."
    assert page.count(told) == 2  # below the picture, and for those who cannot see it
    assert ">expected<" in page
    assert ">of an even draw<" in page


def test_a_night_of_an_earlier_version_has_no_such_figures(tmp_path: Path) -> None:
    summary = write_night(tmp_path)
    for file in tmp_path.glob("round-*/checkpoint/metrics.json"):
        file.write_text(json.dumps({"signal_share": 0.5, "reward": 0.5}))
    page = render(tmp_path, summary)
    assert "Last round: 0.50.<" in page
    assert ">expected<" not in page


def write_mixed_night(folder: Path) -> Path:
    """Two rounds of GSM8K and MBPP, where every problem is a kind of its own; in the second the sandbox failed once."""
    asked = [
        prompt("gsm8k/train/0", 0, benchmark="gsm8k", kind="gsm8k/train/0", level=None),
        prompt("gsm8k/train/1", 1, benchmark="gsm8k", kind="gsm8k/train/1", level=None),
        prompt("mbpp/601", 2, benchmark="mbpp", kind="mbpp/601", level=None),
    ]
    for number, program in ((1, "crashed"), (2, "grader_failed")):
        verdicts = [("gsm8k/train/0", 0, "correct"), ("gsm8k/train/1", 1, "no_answer"), ("mbpp/601", 2, program)]
        scores = [
            score(name, group, sample, None if verdict == "grader_failed" else float(verdict == "correct"))
            | {"verdict": verdict}
            for name, group, verdict in verdicts
            for sample in range(2)
        ]
        rates = [solve_rate("gsm8k/train/0", 6, 3, level=None), solve_rate("gsm8k/train/1", 4, 0, level=None)]
        write_stage(folder / f"round-0{number}" / "select_prompts", {"prompts": (PROMPTS, asked)})
        write_stage(
            folder / f"round-0{number}" / "score", {"scores": (SCORES, scores), "solve_rates": (SOLVE_RATES, rates)}
        )
        left_out = {"gsm8k": ["gsm8k/train/7"], "mbpp": [f"mbpp/{600 + n}" for n in range(5 + number)]}
        (folder / f"round-0{number}" / "select_prompts" / "excluded.json").write_text(json.dumps(left_out))
    return folder


def test_the_verdicts_of_a_mixed_night(tmp_path: Path) -> None:
    folder = write_mixed_night(tmp_path)
    counts = benchmark_verdicts(folder)
    assert {verdict: number for verdict, number in counts["gsm8k"].items() if number} == {"correct": 4, "no_answer": 4}
    assert {verdict: number for verdict, number in counts["mbpp"].items() if number} == {
        "crashed": 2,
        "grader_failed": 2,
    }
    rounds = verdicts_by_round(folder)
    assert rounds["mbpp"]["crashed"].to_dict() == {1: 2, 2: 0}
    table = verdict_table(folder)
    assert table.columns.tolist() == ["correct", "no_answer", "crashed", "grader_failed"]
    assert table.loc["mbpp, training"].tolist() == [0, 0, 2, 2]
    page = render(folder, {"night": "2026-11-20"})
    assert '<tr><th scope="row">gsm8k, training</th><td>4</td><td>4</td><td>0</td><td>0</td></tr>' in page
    assert '<tr><th scope="row">mbpp, training</th><td>0</td><td>0</td><td>2</td><td>2</td></tr>' in page
    (picture,) = [one for one in re.findall(r"<svg.*?</svg>", page, re.S) if 'aria-label="Verdicts' in one]
    for text in ("gsm8k", "mbpp", "correct", "no answer", "stopped", "not graded"):
        assert f">{text}</text>" in picture
    assert ">wrong</text>" not in picture
    assert not Page(page).open


def test_the_exam_is_in_the_table_too(night: tuple[Path, dict[str, Any]]) -> None:
    table = verdict_table(night[0])
    assert table.index.tolist() == ["arithmetic, training", *(f"arithmetic-{n}, exam" for n in ("1-2", "3", "4"))]
    assert table.loc["arithmetic-1-2, exam"].sum() == 400
    assert table.loc["arithmetic, training"].sum() == 3 * 8 * 4


def test_problems_that_a_benchmark_left_out_are_shown(tmp_path: Path) -> None:
    folder = write_mixed_night(tmp_path)
    found = excluded_problems(folder)
    assert found["gsm8k"] == ["gsm8k/train/7"]
    assert len(found["mbpp"]) == 7
    page = render(folder, {"night": "2026-11-20"})
    assert "1 problem of gsm8k left out, whose own truth cannot be read: gsm8k/train/7." in page
    assert "7 problems of mbpp left out, whose own truth cannot be read: mbpp/600, mbpp/601" in page
    assert "mbpp/604, …." in page


def test_problems_that_are_kinds_of_their_own_are_told_by_benchmark(tmp_path: Path) -> None:
    folder = write_mixed_night(tmp_path)
    rates, tried = solve_rates(folder)
    assert rates.loc["gsm8k"].to_dict() == {1: 0.5, 2: 0.5}
    assert tried.to_dict() == {"gsm8k": 8, "mbpp": 4}
    assert kind_history(folder) == [{"gsm8k": (10.0, 3.0)}] * 2


def test_a_refill_is_part_of_its_round(tmp_path: Path) -> None:
    """One more problem in round 2, solved twice; and one that was drawn but not yet scored when the night ended."""
    folder = write_mixed_night(tmp_path)
    name, refill = "gsm8k/train/2", folder / "round-02" / "refill-1"
    asked = [prompt(name, 3, benchmark="gsm8k", kind=name, level=None)]
    scores = [score(name, 3, sample, 1.0) for sample in range(2)]
    rates = [solve_rate(name, 2, 2, level=None), solve_rate("gsm8k/train/0", 6, 3, level=None)]
    write_stage(refill / "select_prompts", {"prompts": (PROMPTS, asked)})
    (refill / "select_prompts" / "excluded.json").write_text(json.dumps({"gsm8k": ["gsm8k/train/8"]}))
    write_stage(refill / "score", {"scores": (SCORES, scores), "solve_rates": (SOLVE_RATES, rates)})
    later = [prompt("gsm8k/train/3", 4, benchmark="gsm8k", kind="gsm8k/train/3", level=None)]
    write_stage(folder / "round-02" / "refill-2" / "select_prompts", {"prompts": (PROMPTS, later)})
    assert benchmark_verdicts(folder)["gsm8k"]["correct"] == 4 + 2
    assert verdicts_by_round(folder)["gsm8k"]["correct"].to_dict() == {1: 2, 2: 4}
    assert verdict_counts(folder)["training"].sum() == 14
    assert solve_rates(folder)[1].to_dict() == {"gsm8k": 10, "mbpp": 4}
    assert kind_history(folder) == [{"gsm8k": (10.0, 3.0)}, {"gsm8k": (8.0, 5.0)}]
    assert excluded_problems(folder)["gsm8k"] == ["gsm8k/train/7", "gsm8k/train/8"]


def test_exam_answers_that_the_grader_failed_on(tmp_path: Path) -> None:
    write_night(tmp_path)
    assert ungraded_answers(tmp_path) == {
        "arithmetic-1-2": (0, 1200),
        "arithmetic-3": (0, 300),
        "arithmetic-4": (0, 300),
    }
    file = tmp_path / "evaluate" / "candidate" / "evaluations.parquet"
    rows = read_table(file, EVALUATIONS).to_dict("records")
    rows[0] |= {"verdict": "grader_failed", "correct": None}
    write_table(file, EVALUATIONS, rows)
    assert ungraded_answers(tmp_path)["arithmetic-1-2"] == (1, 1200)


def test_of_several_targets_the_first_lines_tell_the_one_that_earned_the_promotion() -> None:
    lost, won = (
        {"p_value": p, "difference": d, "low": d, "high": d, "gained": 9, "lost": 1}
        for p, d in ((0.7, -0.01), (0.001, 0.2))
    )
    sides = {"before": {"accuracy": 0.3, "n": 100}, "after": {"accuracy": 0.5, "n": 100}}
    compared = {"candidate": {"gsm8k": lost | sides, "math": won | sides}}
    decision = {"targets": ["gsm8k", "math"], "comparisons": compared}
    told = {outcome: headline({"decision": outcome, "target": "gsm8k"}, decision) for outcome in ("promoted", "kept")}
    assert "+0.20 on math" in told["promoted"].how_much
    assert "on gsm8k" in told["kept"].how_much
