"""Fixtures of the trainer's tests: a tiny student, a teacher, three groups that the student sampled.

Helpers are in `tests/models/support/`: `tiny` (students, tokenizer, rollouts), `tiny_picks`, `weights` (gradients of
steps, comparisons), `microbatches` (Hypothesis), `trl_grpo` (TRL as oracle), `chat_server` (an OpenAI-compatible
teacher), `engine_calls` (in the engine's process), `malicious` (a pickle that runs code).
"""

from pathlib import Path

import pytest
import torch

from models.rollout import Rollout
from tests.models.support.tiny import LENGTHS, sampled_groups, write_teacher, write_tiny


@pytest.fixture(scope="package")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_tiny(tmp_path_factory.mktemp("tiny") / "student")


@pytest.fixture(scope="package", params=["llama", "qwen3"])
def exact_folder(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A student of either kind in fp32, so that only rounding is between two ways to the same number."""
    return write_tiny(tmp_path_factory.mktemp(request.param), request.param, dtype=torch.float32)


@pytest.fixture(scope="package")
def teacher(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_teacher(tmp_path_factory.mktemp("teacher") / "teacher")


@pytest.fixture(scope="package")
def rollouts(folder: Path) -> list[Rollout]:
    return sampled_groups(folder, LENGTHS)


@pytest.fixture
def exact(monkeypatch: pytest.MonkeyPatch) -> None:
    """The trainer computes in fp32, so that only rounding is between two ways to the same number."""
    monkeypatch.setattr("models.trainer.compute_dtype", lambda device: torch.float32)
