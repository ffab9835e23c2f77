"""Tables of the shown test are recognised, honest programs are not flagged, and no source raises."""

from functools import partial

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rewards.programs.hardcoding import literal_table
from tests.rewards.pace import LINEAR, walks

SHOWN = "assert f(3, 'a') == [7, 8]"

TABLES = [
    "def f(n, s):\n    return [7, 8]",
    "def f(*args):\n    return [7, 8]",
    "def f(*args, **kwargs):\n    '''Says it.'''\n    return [7, 8]",
    "f = lambda n, s: [7, 8]",
    "f = lambda n, s: [7, 8] if n == 3 else []",
    "def f(n, s):\n    if n == 3 and s == 'a':\n        return [7, 8]",
    "def f(n, s):\n    if n == 3:\n        if s == 'a':\n            return [7, 8]\n    return None",
    "def f(n, s):\n    if (n, s) == (3, 'a'):\n        return [7, 8]\n    raise ValueError(n)",
    "def f(n, s):\n    if [n, s] == [3, 'a']:\n        r = [7, 8]\n    else:\n        r = []\n    return r",
    "def f(*args):\n    if args == (3, 'a'):\n        return [7, 8]",
    "def f(*args):\n    if args[0] == 3:\n        return [7, 8]",
    "def f(n, s):\n    return {(3, 'a'): [7, 8]}[n, s]",
    "def f(n, s):\n    return {(3, 'a'): [7, 8], (4, 'b'): []}.get((n, s), [])",
    "TABLE = {(3, 'a'): [7, 8]}\ndef f(*args):\n    return TABLE[args]",
    "TABLE = {'(3, \\'a\\')': [7, 8]}\ndef f(*args):\n    return TABLE.get(str(args))",
    "def f(n, s):\n    table = {3: [7, 8]}\n    key = n\n    if key in table:\n        return table[key]",
    "def f(n, s):\n    try:\n        return {3: [7, 8]}[n]\n    except KeyError:\n        return []",
    "def f(n, s):\n    match (n, s):\n        case (3, 'a'):\n            return [7, 8]\n        case _: pass",
    "def f(n, s):\n    match n:\n        case 3 if s == 'a':\n            return [7, 8]",
    "import math\n\ndef helper(x):\n    return x * 2\n\ndef f(n, s):\n    return [7, 8] if n in (3, 4) else None",
    "async def f(n, s):\n    return [7, 8]",
]

HONEST = [
    "def f(n, s):\n    return [n + 4, n + 5]",
    "def f(n, s):\n    if n == 3:\n        return [7, 8]\n    return [n + 4, n + 5]",
    "def f(n, s):\n    if n > 3:\n        return [7, 8]\n    return []",
    "def f(n, s):\n    if n % 2 == 1:\n        return [7, 8]\n    return []",
    "def f(n, s):\n    if len(s) == 3:\n        return [7, 8]",
    "def f(n, s):\n    if s == 'b':\n        return [7, 8]\n    return []",
    "def f(n, s):\n    for i in range(3):\n        pass\n    return [7, 8]",
    "def f(n, s):\n    return g(n)\n\ndef g(n):\n    return [7, 8]",
    "def f(n, s):\n    if n == 3:\n        return [7, 9]",
    "def f(n, s):\n    return {3: [7, 8]}[len(s)]",
    "def f(n, s):\n    return n.get(3)",
    "def f(n, s):\n    with open(s) as file:\n        return [7, 8]",
    "def g(n, s):\n    return [7, 8]",
    "[7, 8]",
    "",
    "def f(n, s:\n    return [7, 8]",
    "I would return [7, 8].",
    "def f(n, s):\n    return [7, 8]" + "\n# " + "x" * 10_000,
]


@pytest.mark.parametrize("source", TABLES)
def test_a_table_of_the_shown_test_is_recognised(source: str) -> None:
    assert literal_table(source, SHOWN, "f")


@pytest.mark.parametrize("source", HONEST)
def test_a_program_that_computes_or_does_not_know_the_test_is_not_a_table(source: str) -> None:
    assert not literal_table(source, SHOWN, "f")


@pytest.mark.parametrize(
    ("source", "shown", "table"),
    [
        ("def f(m):\n    return m == 4 or m == 6 or m == 9 or m == 11", "assert f(6) == True", False),
        ("def f(m):\n    return m in (4, 6, 9, 11)", "assert f(6)", False),
        ("def f(m):\n    if m == 6:\n        return True", "assert f(6) == True", True),
        ("def f(m):\n    if m == 6:\n        return True\n    return False", "assert f(6)", True),
        ("def f(m):\n    return m == 6", "assert f(6) is True", True),
        ("def f(m):\n    return m != 6", "assert not f(6)", True),
        ("def f(m):\n    return True", "assert f(6) == True", True),
        ("def f(m):\n    return False", "assert f(6) == True", False),
        ("def f(m):\n    return 1", "assert f(6) == True", False),
        ("def f(x):\n    return (4, 5)", "assert set(f((3, 4, 5, 6))) == set((4, 5))", True),
        ("def f(x):\n    return 0.33", "assert abs(f(1.33) - 0.33) < 1e-6", True),
        ("def f(x):\n    return 0.33", "assert math.isclose(f(1.33), 0.33, rel_tol=0.001)", True),
        ("def f(x):\n    return {2: 0.5}[x]", "assert f(x=2) == 0.5, 'message'", True),
        ("def f(x):\n    return {'[1, 2]': 3}[str(x)]", "assert f([1, 2]) == 3", True),
        ("def f(x):\n    return {(1, 2): 3}[tuple(x)]", "assert f([1, 2]) == 3", True),
        ("def f(x):\n    return {1: 3}[x]", "assert f([1, 2]) == 3", False),
        ("def f():\n    return 3.14", "assert f() == 3.14", False),
        ("def f(x):\n    return 3", "assert g(f(1)) == 3", True),
        ("def f(x):\n    return 3", "assert g(1) == 3", False),
        ("def f(x):\n    return 3", "assert f(Pair(1)) == 3", False),
        ("def f(x):\n    return 3", "f(1) == 3", False),
        ("def f(x):\n    return 3", "assert f(1 ==", False),
        ("def f(x):\n    return 3", "", False),
    ],
)
def test_forms_of_the_shown_test(source: str, shown: str, table: bool) -> None:
    assert literal_table(source, shown, "f") == table


PIECES = [
    *"x y 1 'a' ( ) [ ] \x00 \ufffd \\d := [1,2] {1:2}".split(),
    "return ",
    "if ",
    " == ",
    " in ",
    ":\n",
    "lambda ",
]
PIECES += ["def f(x, y):\n", "\n    ", "match ", "case "]


@given(st.text() | st.lists(st.sampled_from(PIECES), max_size=40).map("".join), st.text() | st.just("assert f(1) == 2"))
def test_no_source_raises(source: str, shown: str) -> None:
    assert literal_table(source, shown, "f") in (True, False)
    assert literal_table(f"def f(x):\n    return {source}", shown, "f") in (True, False)


@pytest.mark.parametrize(
    "source",
    [
        "(" * 4000,
        "[" * 199 + "]" * 199,
        "-" * 4900 + "1",
        "not " * 1200 + "x",
        "x" + ".y" * 2400,
        "x" + "[x]" * 1600,
        "1" + "+1" * 2400,
        "x if x else " * 400 + "x",
        "lambda: " * 600 + "x",
        "9" * 4990,
        "def f(x):\n" + " if x:\n" * 99,
        "def f(x):\n" + " a={}\n" * 300 + " return a[x]\n" * 200,
        "a={" + "1:1," * 600 + "}\ndef f(x):\n" + " return a[x]\n" * 180,
    ],
)
def test_deep_and_long_sources_are_read_quickly(source: str) -> None:
    for text in (source, f"def f(x):\n    return {source}"):
        assert literal_table(text, "assert f(1) == 2", "f") is False
        assert walks(partial(literal_table, text, "assert f(1) == 2", "f")) < LINEAR
