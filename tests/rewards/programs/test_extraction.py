"""Which program is taken from a completion, case by case."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rewards.programs.extraction import program_text

CODE = "def f(x):\n    return x + 1\n"

CASES = [
    ("bare", CODE, CODE),
    ("bare with blank lines around", f"\n\n{CODE}\n\n", f"\n\n{CODE}\n\n"),
    ("prose", "I cannot do this.", "I cannot do this."),
    ("empty", "", None),
    ("python", f"```python\n{CODE}```", CODE),
    ("attributes", f"```{{.python .numberLines}}\n{CODE}```", CODE),
    ("tildes", f"~~~\n{CODE}~~~", CODE),
    ("prose around", f"Here it is:\n\n```python\n{CODE}```\nIt adds one.", CODE),
    ("two blocks: the last", f"```python\nx = 1\n```\nBetter:\n```python\n{CODE}```", CODE),
    ("another language after it", f"```python\n{CODE}```\nRun:\n```bash\npython f.py\n```", CODE),
    ("an unlabelled block after it counts", f"```python\n{CODE}```\n```\n2\n```", "2\n"),
    ("only another language", f"```ruby\n{CODE}```", CODE),
    ("never closed", f"```python\n{CODE}", CODE),
    ("an empty block after a full one", f"```python\n{CODE}```\n```python\n```", CODE),
    ("a bare program and a stray fence", f"{CODE}```", CODE),
    ("prose and an empty block", "No.\n```\n```", "No.\n\n"),
    ("a longer fence", f"````\n{CODE}````", CODE),
    ("a shorter fence does not close", "````\n```\nx = 1\n```\n````", "```\nx = 1\n```\n"),
    ("the other mark does not close", "```\n~~~\nx = 1\n```", "~~~\nx = 1\n"),
    ("a labelled fence does not close", "```python\nx = 1\n```python\ny = 2\n```", "x = 1\n```python\ny = 2\n"),
    ("spaces after the closing fence", f"```python\n{CODE}```  \nDone.", CODE),
    ("in a list", "1. So:\n   ```python\n   def f(x):\n       return x\n   ```", "def f(x):\n    return x\n"),
    ("less indented than its fence", "  ```\n x = 1\ny = 2\n  ```", "x = 1\ny = 2\n"),
    (
        "a fence in a docstring",
        '```python\n"""\n    ```\n    f()\n    ```\n"""\n```',
        '"""\n    ```\n    f()\n    ```\n"""\n',
    ),
    (
        "a fence in a bare docstring",
        'def f():\n    """\n    ```\n    f()\n    ```\n    """\n',
        'def f():\n    """\n    ```\n    f()\n    ```\n    """\n',
    ),
    ("code within a line", "```x = 1``` is the answer", "```x = 1``` is the answer"),
    ("backticks in a string", "```python\ns = '```'\n```", "s = '```'\n"),
    ("Windows line ends", "```python\r\ndef f(x):\r\n    return x\r\n```\r\n", "def f(x):\n    return x\n"),
    ("old Macintosh line ends", "```\rx = 1\r```", "x = 1\n"),
    ("other line separators are left in strings", "```\ns = 'a\u2028b\x0cc'\n```", "s = 'a\u2028b\x0cc'\n"),
    ("NUL and surrogates are handed on", "```\n\0\ud800\n```", "\0\ud800\n"),
]


@pytest.mark.parametrize(("completion", "program"), [case[1:] for case in CASES], ids=[case[0] for case in CASES])
def test_the_program_of_a_completion(completion: str, program: str | None) -> None:
    assert program_text(completion) == program


@pytest.mark.parametrize("after", ["```\n2\n```", "```python\nprint(f(1))\n```", "  ```py\n  f (1)\n  ```"])
def test_usage_after_a_program_is_not_the_program(after: str) -> None:
    assert program_text(f"```python\n{CODE}```\nSo:\n{after}", "f") == CODE
    better = "class f:\n    pass\n"
    assert program_text(f"```python\n{CODE}```\nBetter:\n```\n{better}```\n{after}", "f") == better
    assert program_text(f"```python\n{CODE}```\n```\n2\n```", "g") == "2\n"


@given(
    st.text(alphabet="abc =()1\n\t#'\"", min_size=1).filter(str.strip), st.sampled_from(["", "python", "py", "Python3"])
)
def test_a_fenced_program_is_the_bare_one(program: str, label: str) -> None:
    assert program_text(f"Words.\n```{label}\n{program}\n```\nMore words.") == f"{program}\n"
    assert program_text(program) == program
