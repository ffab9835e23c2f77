"""The morning report: what it says, what it leaves out, and that nothing in it can run, load or break the page."""

import html
import json
import math
import re
import shutil
from html.parser import HTMLParser
from pathlib import Path

import pytest

from tasks.report.page import render
from tasks.report.report import division_of
from tests.tasks.doubles.night import Night, write_night

HOSTILE = "<script>alert(1)</script><img src=x onerror=alert(2)></pre>&amp;\x00"
VOID = {"meta", "br", "img", "link", "input", "hr"}


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

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag


def headings(page: str) -> list[str]:
    return re.findall(r"<h2[^>]*>(.*?)</h2>", page) + re.findall(r"<h3>(.*?)</h3>", page)


def on_one_line(page: str) -> str:
    return " ".join(page.split())


def test_alarms_come_first_then_the_four_lines(night: Night, page: str) -> None:
    header = page[page.index("<header>") : page.index("</header>")]
    for text in ("The candidate was promoted.", "20 November 2026", "The new checkpoint, cafe42cafe42, now serves."):
        assert text in header
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


def test_the_page_has_all_its_parts_and_is_well_formed(night: Night, page: str) -> None:
    assert headings(page) == [
        *(
            "Reasons for the decision",
            "The exam",
            "What each lesson taught",
            "The night",
            "10 answers of the last round",
        ),
        *("Exam answers that changed", "Verdicts", "Where this comes from"),
        *("Learning curve", "Became right", "Became wrong"),
    ]
    parsed = Parsed(page)
    assert not parsed.open
    ids = [attributes["id"] for _, attributes in parsed.tags if "id" in attributes]
    assert len(ids) == len(set(ids))
    pictures = [attributes["aria-label"] for _, attributes in parsed.tags if attributes.get("role") == "img"]
    assert [str(text)[:15] for text in pictures] == ["Learning curve."]
    tables = re.findall(r'role="region" aria-label="(.*?)"', page)
    assert {"The exam, part by part", "Solved, by kind of problem", "Figures by round", "Verdicts"} <= set(tables)
    assert len(tables) == len(set(tables)) == page.count("<table>")
    assert render(*night) == page


def test_the_exam_shows_its_looks_and_the_night_its_hours(own_night: Night) -> None:
    folder, summary = own_night
    look = {"problems": 100, "gained": 9, "lost": 4, "difference": 0.05, "p_value": 0.13, "level": 0.0003}
    summary["looks"] = [look | {"verdict": "undecided"}, *summary["looks"]]
    division = {"hours": 900.0, "before": 62.0, "lessons": 210.0, "rounds": 420.0, "exam": 135.0, "after": 60.0}
    (folder / "division.json").write_text(json.dumps({"most": 434, **division}))
    page = on_one_line(render(folder, summary | {"hours": division_of(folder)}))
    assert (
        '<th scope="row">100</th><td>9</td><td>4</td><td>+0.05</td> <td>0.13<small>at most 0.0003</small></td>'
        "<td>undecided</td>"
    ) in page
    assert "Problems, of 868" in page
    assert re.search(r"<small>up to 434 problems</small></th><td>2 min 15 s</td><td>\d+ s</td>", page)
    begun = summary | {"digests": summary["digests"] | {"start": "abcdef012345"}}
    assert "The night began with <code>abcdef012345</code>." in on_one_line(render(folder, begun))
    assert "The hours" not in render(folder, summary | {"hours": None})


@pytest.mark.parametrize(
    ("absent", "gone"),
    [
        (["distill", "fit_reward_model/manifest.json"], set()),  # gone, and not committed
        (["round-01", "round-02", "round-03"], {"10 answers of the last round", "Learning curve"}),
    ],
)
def test_what_is_absent_is_left_out(own_night: Night, page: str, absent: list[str], gone: set[str]) -> None:
    folder, summary = own_night
    for name in absent:
        shutil.rmtree(folder / name) if (folder / name).is_dir() else (folder / name).unlink()
    shorter = render(folder, summary)
    assert set(headings(page)) - set(headings(shorter)) == gone
    assert not Parsed(shorter).open


def test_a_skipped_step_leaves_a_gap(own_night: Night) -> None:
    folder, summary = own_night
    file = folder / "round-02/checkpoint/metrics.json"
    file.write_text(json.dumps(json.loads(file.read_text()) | {"grad_norm": math.inf, "reward": math.nan}))
    assert '<th scope="row">2</th><td>–</td><td>' in render(folder, summary)  # its quiz is there


def test_nothing_is_loaded_and_what_a_model_or_an_alarm_says_is_text(tmp_path: Path) -> None:
    night = tmp_path / "2026-11-20"
    summary = write_night(night, rounds=1, hostile=HOSTILE) | {"alarms": [f"{HOSTILE}\ud800"]}
    page = render(night, summary | {"links": summary["links"] | {"evil": "javascript:alert(3)"}})
    assert page.count("&lt;script&gt;alert(1)&lt;/script&gt;&lt;img src=x") > 10
    parsed = Parsed(page)
    assert not parsed.open
    assert not {tag for tag, _ in parsed.tags} & {"script", "link", "img", "iframe", "object"}
    assert all(not attributes.keys() & {"src", "srcset", "onload", "onerror"} for _, attributes in parsed.tags)
    assert "default-src 'none'" in page
    links = {attributes["href"] for tag, attributes in parsed.tags if tag == "a"}
    assert links == set(summary["links"].values())
    (tmp_path / "report.html").write_text(page, encoding="utf-8")  # a lone surrogate could not be written
