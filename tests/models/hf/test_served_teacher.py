"""The starter model as a teacher, behind `vllm serve`: what the protocol's stand-in in the other tests stands for."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from benchmarks.inputs.starter import starter
from benchmarks.local_teacher import NAME, served
from conf.sections.lessons import EndpointConfig
from flows.web.address import free_port
from models.hf.teacher_client import Question, ask
from rewards.arithmetic import Arithmetic

pytestmark = pytest.mark.full


@pytest.fixture(scope="module")
def url(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """Where the starter model is served."""
    folder = tmp_path_factory.mktemp("served")
    with served(starter(folder / "starter"), free_port(), folder / "log") as found:
        yield found


def test_it_answers_and_the_greedy_answers_are_the_same_again(url: str, tmp_path: Path) -> None:
    prompts = [Arithmetic().prompt(problem) for problem in Arithmetic(levels=["1"]).draw("teacher", 3)]
    asked = [Question([{"role": "user", "content": prompt}], number) for prompt in prompts for number in range(2)]
    config = EndpointConfig(base_url=url, model=NAME, max_tokens=32)
    first, again = (ask(asked, config, tmp_path / name) for name in ("first", "again"))
    assert (first.asked, first.failed, first.stopped) == (6, {}, None)
    assert all(first.answers)
    assert first.answers[::2] == again.answers[::2]
    assert 6 * 20 < first.tokens < 6 * 150
