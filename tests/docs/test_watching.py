"""The table of alarms has every alarm that the source raises, and no other."""

import ast
import re

from tests.docs.pages import ROOT

MAKERS = {"Alarm", "_alarm", "_about"}  # what makes an alarm, with its name first


def test_every_alarm_has_its_row() -> None:
    raised = {
        call.args[0].value
        for file in (ROOT / "tasks").rglob("*.py")
        for call in ast.walk(ast.parse(file.read_text()))
        if isinstance(call, ast.Call) and isinstance(call.func, ast.Name) and call.func.id in MAKERS
        if call.args and isinstance(call.args[0], ast.Constant)
    }
    page = (ROOT / "docs" / "how-to" / "every-night.md").read_text()
    assert raised == set(re.findall(r"^\| `([a-z_]+)` \|", page, re.MULTILINE))
    assert len(raised) > 10
