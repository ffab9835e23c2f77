"""The report's charts: what they draw, in the page's colours, and the same bytes every time."""

import re
import subprocess
import sys
from xml.etree import ElementTree

import pandas as pd
import pytest

from tasks.report.charts import Picture, history_curve, learning_curve
from tasks.report.history import PastNight

NIGHTS = [
    PastNight("2026-11-18", True, 0.1, 0.3, 0.25, 0.35, "../2026-11-18/report.html"),
    PastNight("2026-11-19", False, 0.3, 0.2, 0.15, 0.25, "../2026-11-19/report.html"),
    PastNight("2026-11-20", True, 0.3, 0.5, 0.45, 0.55, None),
]
REWARD = pd.Series({1: 0.25, 2: 0.5, 3: 0.75})


def drawn() -> list[Picture]:
    exams = {"champion": 0.5, "candidate": 0.52}
    return [learning_curve(REWARD, pd.Series({2: 0.4}), exams), history_curve(NIGHTS, "arithmetic-1-2")]


def test_a_chart_is_text_and_lines_in_the_pages_colours_and_always_the_same() -> None:
    ids: list[str] = []
    for picture in drawn():
        root = ElementTree.fromstring(picture.svg)
        assert len(root.findall(".//{*}text")) > 5
        assert not root.findall(".//{*}metadata")
        assert {"currentColor", "var(--muted)", "var(--first)", "var(--second)"} <= set(
            re.findall(r"(?:fill|stroke): ([^;\"]+)", picture.svg)
        )
        assert not re.search(r"#0[1-5]0[1-5]0[1-5]|white|#ffffff", picture.svg)
        own = re.findall(r'\bid="(.*?)"', picture.svg)
        assert set(re.findall(r'(?:href="|url\()#(.*?)["\)]', picture.svg)) <= set(own)
        ids += own
    assert len(ids) == len(set(ids))
    assert drawn() == drawn()  # the same bytes


@pytest.mark.full
def test_matplotlib_is_not_imported_before_it_draws() -> None:
    code = "import sys, tasks.report.page; sys.exit('matplotlib' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0
