"""The lesson of docs/serving.md: its program, and what it writes."""

import os
import re
import subprocess
import sys
from pathlib import Path

from conf.storage.home import Home
from conf.storage.journal import Preference
from conf.storage.journal_file import read_file

ROOT = Path(__file__).parents[3]


def run_lesson(url: str, home: Home) -> subprocess.CompletedProcess[str]:
    """Run the program of the docs as it is printed there: a question, five answers, and the pick of the second."""
    (program,) = re.findall(r"```python\n(.+?)```", (ROOT / "docs" / "serving.md").read_text(), re.DOTALL)
    environment = os.environ | {"NIGHTSCHOOL_HOME": str(home.root), "PYTHONPATH": str(ROOT)}
    command = [sys.executable, "-c", program.replace("http://127.0.0.1:8000", url)]
    given = "What is 2 + 2?\n1\n"
    return subprocess.run(
        command, input=given, env=environment, capture_output=True, text=True, check=False, timeout=120
    )


def only_pick(home: Home) -> Preference:
    """The only line of the journal."""
    (file,) = home.journal.iterdir()
    ((_, pick),), bad = read_file(file)
    assert not bad
    assert isinstance(pick, Preference)
    return pick
