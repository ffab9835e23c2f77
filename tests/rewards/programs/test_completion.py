"""A completion of a function, in any form, becomes the whole program."""

import ast

import pytest

from rewards.humaneval import preamble, whole_program

HEAD = "from typing import List\n\n\ndef helper(x):\n    return x\n\n\n"
PROMPT = f'{HEAD}def twice(n: int) -> List[int]:\n    """Twice.\n    >>> twice(1)\n    [1, 1]\n    """\n'
BODY = "    result = [n]\n    return helper(result) * 2\n"
WHOLE = "def twice(n):\n    return [n, n]\n"

CONTINUED = {
    "the body": BODY,
    "blank lines first": f"\n\n{BODY}",
    "Windows line ends": BODY.replace("\n", "\r\n"),
    "goes on with a function": f"{BODY}\n\ndef thrice(n):\n    return",
    "says its own head again": f"{BODY}\n\ndef twice(n):\n    return [",
    "goes on with a print": f"{BODY}\nprint(twice(1)",
    "goes on with a main": f'{BODY}\nif __name__ == "__main__":\n    import doctest\n',
    "goes on with a decorator": f"{BODY}@property",
    "a fence and an explanation": f"{BODY}```\n\nThis returns it twice.",
    "a fenced body": f"The body:\n```python\n{BODY}```",
}


@pytest.mark.parametrize("completion", CONTINUED.values(), ids=CONTINUED)
def test_a_body_continues_the_prompt(completion: str) -> None:
    program = whole_program(completion, PROMPT, "twice")
    assert program is not None
    assert ast.dump(ast.parse(program)) == ast.dump(ast.parse(PROMPT + BODY))


FENCED = {
    "fenced": f"Sure:\n```python\n{WHOLE}```\nDone.",
    "an indented sentence before the block": f"  Sure:\n```python\n{WHOLE}```",
    "an indented fence": "  ```python\n  def twice(n):\n      return [n, n]\n  ```",
}
BARE = {
    "bare": WHOLE,
    "an async function": f"async {WHOLE}",
    "a lambda": "twice = lambda n: [n, n]\n",
    "its own helpers first": f"import math\n\ndef g(n):\n    return n\n\n{WHOLE}",
    "another function": "def thrice(n):\n    return [n] * 3\n",
    "prose": "I cannot.",
}


@pytest.mark.parametrize("name", FENCED | BARE)
def test_a_whole_program_gets_the_imports_and_helpers_of_the_prompt(name: str) -> None:
    completion = (FENCED | BARE)[name]
    assert whole_program(completion, PROMPT, "twice") == f"{HEAD}\n{WHOLE if name in FENCED else completion}"


def test_a_program_that_must_come_first_stays_alone() -> None:
    program = f"from __future__ import annotations\n\n{WHOLE}"
    assert whole_program(program, PROMPT, "twice") == program


@pytest.mark.parametrize("completion", ["", "  \n\t", "```python\n```", "```"])
def test_a_blank_completion_has_no_program(completion: str) -> None:
    assert whole_program(completion, PROMPT, "twice") is None


def test_the_preamble_is_what_precedes_the_function() -> None:
    assert preamble(PROMPT, "twice") == HEAD
    assert preamble(PROMPT, "helper") == "from typing import List\n\n\n"
    assert preamble(WHOLE, "twice") == ""
    assert preamble(PROMPT, "twic") is None
    assert preamble(PROMPT, "x") is None
    assert preamble("twice == 3\n", "twice") is None
