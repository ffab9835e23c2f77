"""A trainer's process loads neither scikit-learn nor Triton, and whoever wants them later still can."""

import subprocess
import sys

import pytest

SCRIPT = """
import sys
import models.trainer
from models.hf.lean import USED_BY_OTHERS_ONLY
for package in USED_BY_OTHERS_ONLY:
    assert package not in sys.modules, package
import sklearn
"""


@pytest.mark.full
def test_what_only_others_use_is_not_loaded() -> None:
    subprocess.run([sys.executable, "-c", SCRIPT], check=True)
