"""The morning report: what it says, what it leaves out, and that nothing in it can run, load or break the page."""

import html
import json
import math
import re
import shutil
from html.parser import HTMLParser
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import pytest

from tasks.report.hours import division_of
from tasks.report.page import render
from tasks.report.report import summarise
from tests.tasks.doubles.night import write_config, write_exam, write_night

Night = tuple[Path, dict[str, Any]]

HOSTILE = "<script>alert(1)</script><img src=x onerror=alert(2)></pre>&amp;\x00"
VOID = {"meta", "br", "img", "link", "input", "hr"}
OF_ROUNDS = {
    *("10 answers of the last round", "Learning curve", "Parts of the reward", "Verdicts, by benchmark"),
    *("Solved, by kind of problem", "Groups with signal", "Gradient norm", "Length of the completions"),
    "Entropy and mismatch",
}


class Parsed(HTMLParser):
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


def sections(page: str) -> list[str]:
    return re.findall(r"<h2[^>]*>(.*?)</h2>", page) + re.findall(r"<h3>(.*?)</h3>", page)


def change(file: Path, **changes: Any) -> None:
    file.write_text(json.dumps(json.loads(file.read_text()) | changes))


def test_the_first_lines_come_first_and_before_them_only_alarms(night: Night, page: str) -> None:
    first = page[page.index("<header>") : page.index("</header>")]
    for text in ("The candidate was promoted.", "20 November 2026", "The new checkpoint, cafe42cafe42, now serves."):
        assert text in first
    assert "p &lt; 0.0001" in first
    assert 'id="alarms"' not in page
    alarmed = render(night[0], night[1] | {"alarms": ["Disk <full>", "No signal"]})
    assert '<h2 id="alarms">2 alarms</h2>' in alarmed
    assert alarmed.index("<li>Disk &lt;full&gt;</li>") < alarmed.index("What changed")


def test_every_number_of_the_exam_is_on_the_page(night: Night, page: str) -> None:
    _, summary = night
    for part, accuracies in summary["benchmarks"].items():
        row = re.search(rf'<tr><th scope="row">{part}<small>.*?</tr>', page, re.S)
        assert row is not None
        for one in accuracies.values():
            low, high = (100 * one[end] for end in ("low", "high"))
            assert f"{100 * one['accuracy']:.1f} %<small>{low:.1f}–{high:.1f}</small>" in row.group()
    for reason in summary["reasons"]:
        assert html.escape(reason).replace("&#x27;", "&#39;") in page
    assert "seed: 1" in page


def test_the_page_has_all_its_parts_and_is_well_formed(page: str) -> None:
    assert sections(page) == [
        *("Reasons for the decision", "The exam", "What each part taught", "The night", "10 answers of the last round"),
        *("Exam answers that changed", "Verdicts", "Where this comes from"),
        *("Learning curve", "Parts of the reward", "Verdicts, by benchmark", "Solved, by kind of problem"),
        *("Groups with signal", "Gradient norm", "Length of the completions", "Entropy and mismatch"),
        *("Distillation", "Where the time went", "Became right", "Became wrong", "By benchmark"),
    ]
    parsed = Parsed(page)
    assert not parsed.open
    ids = [attributes["id"] for _, attributes in parsed.tags if "id" in attributes]
    assert len(ids) == len(set(ids))


def test_pictures_have_a_text_and_take_the_pages_colours(page: str) -> None:
    pictures = re.findall(r"<svg.*?</svg>", page, re.S)
    assert len(pictures) == 10
    for picture in pictures:
        root = ElementTree.fromstring(picture.replace("<svg", '<svg xmlns:xlink="x"', 1))
        assert root.get("role") == "img"
        assert root.get("aria-label")
        assert root.find(".//text") is not None
        assert "currentColor" in picture
        assert not re.search(r"(fill|stroke): #", picture)
    counts = "Whole night: 30 groups sampled, 12 with signal, 6 drawn as replacements."
    assert page.count(counts) == 2  # below the picture, and for those who cannot see it


def test_the_exam_shows_its_looks_and_the_night_its_hours(own_night: Night) -> None:
    folder, summary = own_night
    look = {"problems": 100, "gained": 9, "lost": 4, "difference": 0.05, "p_value": 0.13, "level": 0.0003}
    summary["looks"] = [look | {"verdict": "undecided"}, *summary["looks"]]
    division = {"hours": 900.0, "before": 62.0, "lessons": 210.0, "rounds": 420.0, "exam": 135.0, "after": 60.0}
    (folder / "division.json").write_text(json.dumps({"most": 434, **division}))
    page = " ".join(render(folder, summary | {"hours": division_of(folder)}).split())
    assert (
        '<th scope="row">100<small>of at most 868</small></th><td>9</td><td>4</td><td>+0.05</td><td>0.13</td>'
        "<td>0.0003</td><td>undecided</td>"
    ) in page
    assert page.count("<small>of at most 868</small>") == 2
    assert "<small>up to 434 problems</small></th><td>2 min 15 s</td><td>51 s</td>" in page  # 11 + 2 · 20 seconds
    assert "the rounds alone added" not in page
    assert "The night began with <code>" not in page
    begun = summary | {"digests": summary["digests"] | {"start": "abcdef012345"}}
    assert "The night began with <code>abcdef012345</code>." in " ".join(render(folder, begun).split())
    assert "The hours" not in " ".join(render(folder, summary | {"hours": None}).split())


def test_the_rounds_growth_is_shown_where_all_problems_were_asked(tmp_path: Path) -> None:
    night = tmp_path / "2026-11-20"
    night.mkdir()
    write_config(night)
    summary = summarise(night, write_exam(night, whole=True), 3, [], {})
    page = " ".join(render(night, summary).split())
    assert re.search(r"On all problems, the rounds alone added \+0\.\d\d \(\+0\.\d\d to \+0\.\d\d\)\.", page)
    assert '<th scope="col">after the lessons</th>' in page


def test_a_skipped_step_and_the_rounds_of_a_teacher_are_drawn(own_night: Night) -> None:
    folder, summary = own_night
    change(folder / "round-02/checkpoint/metrics.json", entropy=math.nan, grad_norm=math.inf, reward=math.nan)
    for number, kl in {2: 1.25, 3: 0.5}.items():
        change(folder / f"round-0{number}/checkpoint/metrics.json", teacher_kl=kl)
    page = render(folder, summary)
    assert {"Gradient norm", "Entropy and mismatch", "Learning curve"} <= set(sections(page))
    assert "from 1.25 to 0.50 nats" in page


@pytest.mark.parametrize(
    ("absent", "gone"),
    [
        (["distill"], {"Distillation"}),
        (["distill/manifest.json"], {"Distillation"}),  # not committed
        (["round-01", "round-02", "round-03"], OF_ROUNDS),
        (["fit_reward_model"], set()),
    ],
)
def test_what_is_absent_is_left_out(own_night: Night, page: str, absent: list[str], gone: set[str]) -> None:
    folder, summary = own_night
    for name in absent:
        shutil.rmtree(folder / name) if (folder / name).is_dir() else (folder / name).unlink()
    shorter = render(folder, summary)
    assert set(sections(page)) - set(sections(shorter)) == gone
    assert not Parsed(shorter).open


@pytest.mark.parametrize("theme", ["light", "dark", "print"])
def test_every_colour_can_be_read_on_its_ground(theme: str, page: str) -> None:
    """The contrast of text, WCAG 2.2, 1.4.3: at least 4.5; drawn lines have it too, where 3 would do (1.4.11)."""
    block = re.findall(r":root \{(.*?)\}", page, re.S)[["light", "dark", "print"].index(theme)]
    colours = dict(re.findall(r"--(\w+): (#[0-9a-f]{3,6});", block))
    assert colours.keys() == {"page", "ink", "muted", "rule", "panel", "first", "second", "good", "bad"}

    def luminance(colour: str) -> float:
        long = colour[1:] if len(colour) == 7 else "".join(2 * digit for digit in colour[1:])
        parts = [int(long[at : at + 2], 16) / 255 for at in (0, 2, 4)]
        linear = [part / 12.92 if part <= 0.04045 else ((part + 0.055) / 1.055) ** 2.4 for part in parts]
        return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]

    for ground in ("page", "panel"):
        for name in ("ink", "muted", "first", "second", "good", "bad"):
            darker, lighter = sorted((luminance(colours[name]), luminance(colours[ground])))
            assert (lighter + 0.05) / (darker + 0.05) >= 4.5, (name, ground)


def test_nothing_is_loaded_and_only_the_given_links_lead_away(night: Night, page: str) -> None:
    folder, summary = night
    body = page[: page.index("<pre>", page.index("<footer>"))]  # the configuration may name addresses
    assert sorted(set(re.findall(r"https?://[^\"<\s]+", body))) == sorted(summary["links"].values())
    tags = Parsed(page).tags
    assert not {tag for tag, _ in tags} & {"script", "link", "img", "iframe", "object"}
    assert all(not attributes.keys() & {"src", "srcset", "onload", "onerror"} for _, attributes in tags)
    assert "default-src 'none'" in page
    unsafe = render(folder, summary | {"links": {"mlflow": "javascript:alert(1)"}})
    assert "javascript" not in unsafe


def test_what_a_model_or_an_alarm_says_is_text(tmp_path: Path) -> None:
    night = tmp_path / "2026-11-20"
    page = render(night, write_night(night, rounds=1, hostile=HOSTILE) | {"alarms": [f"{HOSTILE}\ud800"]})
    assert "<script" not in page
    assert page.count("&lt;script&gt;alert(1)&lt;/script&gt;&lt;img src=x") > 10
    assert not Parsed(page).open
    (tmp_path / "report.html").write_text(page, encoding="utf-8")  # a lone surrogate could not be written
