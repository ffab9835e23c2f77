"""A benchmark is found by its name, and only by its name."""

from typing import get_args

import pytest

from conf.home import InputError
from conf.schema import BenchmarkConfig, ExamPart
from rewards.arithmetic import Arithmetic
from rewards.benchmarks import load
from rewards.gsm8k import Gsm8k


def test_arithmetic_with_its_levels() -> None:
    benchmark = load("arithmetic", levels=("1", "2"))
    assert isinstance(benchmark, Arithmetic)
    assert benchmark.levels == ("1", "2")


def test_gsm8k_with_its_source() -> None:
    benchmark = load("gsm8k", source="a folder")
    assert isinstance(benchmark, Gsm8k)
    assert benchmark.source == "a folder"


def test_every_name_that_the_configuration_allows_is_known() -> None:
    names = get_args(BenchmarkConfig.model_fields["name"].annotation)
    assert names == get_args(ExamPart.model_fields["benchmark"].annotation)
    assert [load(name).name for name in names] == list(names)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("Arithmetic",), "no benchmark is called 'Arithmetic'; there are arithmetic and gsm8k"),
        (("",), "no benchmark is called ''; there are arithmetic and gsm8k"),
        (("arithmetic", "a folder"), "arithmetic: its problems are generated, .*"),
        (("arithmetic", None, ["6"]), "arithmetic: no level 6; there are 1, 2, 3, 4, 5"),
        (("gsm8k", None, ["1"]), "gsm8k: its problems have no levels; remove `levels`"),
    ],
)
def test_what_does_not_exist_is_refused_in_one_line(arguments: tuple, message: str) -> None:
    with pytest.raises(InputError, match=f"^{message}$") as caught:
        load(*arguments)
    assert "\n" not in str(caught.value)
