"""An exam of named benchmarks: the configuration's own parts, or the published exams with room for their answers."""

from conf.load import STARTER, load_night
from conf.sections.published_exams import PROMPT_TOKENS, with_exam

CONFIG = load_night(STARTER, ["exam.guards=[{benchmark: arithmetic, levels: ['3'], problems: 100}]"])


def test_the_parts_that_the_configuration_has_stay_what_they_are() -> None:
    found = with_exam(CONFIG, ["arithmetic-3", "arithmetic-1-2"])
    assert found.exam.parts == (CONFIG.exam.guards[0], CONFIG.exam.target)
    assert (found.engine, found.exam.max_completion_tokens) == (CONFIG.engine, CONFIG.exam.max_completion_tokens)


def test_a_benchmarks_name_means_all_its_parts_once() -> None:
    assert with_exam(CONFIG, ["arithmetic", "arithmetic-3"]).exam.parts == CONFIG.exam.parts


def test_a_benchmark_that_the_configuration_has_not_is_its_published_exam_with_room() -> None:
    found = with_exam(CONFIG, ["gsm8k", "math"])
    assert [(part.name, part.problems) for part in found.exam.parts] == [("gsm8k", None), ("math-500", None)]
    assert found.exam.max_completion_tokens == 1024
    assert found.engine.max_model_len == 1024 + PROMPT_TOKENS


def test_at_most_so_many_problems_of_each() -> None:
    found = with_exam(CONFIG, ["triviaqa", "gsm8k"], 1200)
    assert [part.problems for part in found.exam.parts] == [1000, 1200]
    fewer = with_exam(CONFIG, ["arithmetic-3"], 7)
    assert fewer.exam.target.problems == 7
    assert fewer.exam.max_completion_tokens == CONFIG.exam.max_completion_tokens  # it is asked as by night
    assert fewer.engine == CONFIG.engine
