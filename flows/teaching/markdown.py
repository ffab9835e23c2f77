"""Renders answers as HTML: Markdown with formulas, in which nothing can run, load or lead anywhere."""

import html
from collections.abc import Mapping
from typing import Any
from xml.etree import ElementTree

from latex2mathml.converter import convert_to_element
from markdown_it import MarkdownIt
from mdit_py_plugins.dollarmath import dollarmath_plugin

# The elements and attributes of MathML that formulas need. Others, such as links, are left out.
ELEMENTS = frozenset(
    "math mrow mi mn mo ms mtext mspace msup msub msubsup mfrac msqrt mroot mover munder munderover mtable mtr mtd "
    "mstyle mpadded mphantom menclose mmultiscripts mprescripts none".split()
)
ATTRIBUTES = frozenset("display displaystyle mathvariant stretchy fence form columnalign rowspacing".split())


def as_html(text: str) -> str:
    """Render an answer's Markdown as HTML, without links and images, and with any HTML in it shown as text.

    Formulas between dollar signs become MathML.
    """
    return MARKDOWN.render(text).strip()


def as_mathml(formula: str, options: Mapping[str, Any]) -> str:
    """Return a LaTeX formula as MathML, or as it is if it cannot be read. `options`: those of the dollarmath plugin."""
    try:
        tree = convert_to_element(formula, display="block" if options["display_mode"] else "inline")
    except Exception:  # the converter may raise anything for what a model wrote
        return f"<code>{html.escape(formula)}</code>"
    return ElementTree.tostring(_harmless(tree), encoding="unicode")


def _harmless(element: ElementTree.Element) -> ElementTree.Element:
    made: ElementTree.Element = ElementTree.Element(element.tag if element.tag in ELEMENTS else "mrow")
    made.attrib.update({name: value for name, value in element.attrib.items() if name in ATTRIBUTES})
    made.text, made.tail = (html.unescape(text or "") for text in (element.text, element.tail))
    made.extend(map(_harmless, element))
    return made


MARKDOWN = MarkdownIt("js-default", {"html": False, "breaks": True}).disable(["image", "link", "autolink", "linkify"])
MARKDOWN.use(dollarmath_plugin, allow_labels=False, allow_space=False, allow_digits=False, renderer=as_mathml)
