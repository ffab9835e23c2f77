"""The last box of a solution, whatever stands around it."""

import pytest

from rewards.symbolic.boxed import has_box, last_boxed


@pytest.mark.parametrize(
    ("text", "content"),
    [
        (r"\fbox{12}", "12"),
        (r"\boxed {17}", "17"),
        ("\\boxed\n{17}", "17"),
        (r"\boxed 2$", "2"),
        (r"\boxed 1,234.5 m", "1,234.5"),
        (r"\boxed\frac{1}{2}", r"\frac{1}{2}"),
        (r"\\boxed{5}", "5"),
        (r"\boxed{\frac{1}{2}}", r"\frac{1}{2}"),
        (r"\boxed{\{1,2\}}", r"\{1,2\}"),
        (r"\boxed{\left\{ \frac{1}{2} \right.}", r"\left\{ \frac{1}{2} \right."),
        (r"\boxed{a \\{b}}", r"a \\{b}"),
        (r"\boxed{\boxed{5}}", "5"),
        (r"\boxed{4} and \fbox{5}", "5"),
        (r"\boxed{ never closed \boxed{5}", "5"),
        (r"\boxed{5} \boxed{ }", "5"),
        (r"} } \boxed{5} } }", "5"),
        (r"\boxed{5}}}}", "5"),
        (r"\boxed{5} \boxedtext{6}", "5"),
        (r"\boxed{5}, we have \boxed the correct answer", "5"),
        ("\\boxed{line\nbreak}", "line\nbreak"),
        (r"\boxed{\text{a box: } \fbox{7}}", "7"),
    ],
)
def test_the_last_complete_box(text: str, content: str) -> None:
    assert last_boxed(text) == content


@pytest.mark.parametrize(
    "text",
    [
        "",
        "boxed{5}",
        r"\boxed{",
        "\\boxed{ \n {}",
        r"\boxed{\{5\}",
        r"\boxed the answer",
        r"\boxedtext{5}",
        r"\boxed[5]",
        "\\boxed{" * 500,
    ],
)
def test_no_box(text: str) -> None:
    assert last_boxed(text) is None


def test_whether_a_box_begins() -> None:
    assert has_box(r"\boxed{")
    assert has_box(r"a \fbox 5")
    assert not has_box(r"a boxed \boxes")
