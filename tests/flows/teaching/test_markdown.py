"""Markdown and formulas as HTML. What hostile answers do is tested in a browser: test_page.py."""

import pytest

from flows.teaching.markdown import as_html


@pytest.mark.parametrize(
    ("text", "html"),
    [
        ("**7** + 5", "<p><strong>7</strong> + 5</p>"),
        ("It costs $5, or $6 with tax.", "<p>It costs $5, or $6 with tax.</p>"),
        ("$x^2$", "<msup><mi>x</mi><mn>2</mn></msup>"),
        (r"$\text{<b>}$", "<mtext>&lt;b&gt;</mtext>"),
        (r"$\frac$", r"<code>\frac</code>"),
        (r"$\le$", "<mo>≤</mo>"),
    ],
)  # fmt: skip
def test_what_is_rendered(text: str, html: str) -> None:
    assert html in as_html(text)
    assert "href" not in as_html(text)
