"""Hints: beginnings of reference solutions, given to the student as the start of its own answer.

BREAD (arXiv 2506.17211) and QuestA (arXiv 2507.13266) use such hints to teach problems that a student never solves.
"""

import ast
import re

ANSWER = re.compile(r"####|\\boxed|\\fbox")  # markers of a final answer
WORD = re.compile(r"\S+")
BLOCK = re.compile(r"```\w*\n(.*?)^```", re.DOTALL | re.MULTILINE)


def hint(solution: str, share: float, program: bool = False) -> str:
    """Return the beginning of a solution: about `share` of its length, but never the line or box of the answer.

    A step before that line may already give the number.
    Text is cut at the end of a word before its `####` or box. If it has neither, it is cut before its last line, or
    before its last word if it is a single line. With `program`, the solution is Python, bare or in a ``` block, and is
    cut at the end of a statement other than the last. The hint is empty if no cut is nearer to the target length.
    """
    ends = _ends_of_statements(solution) if program else _ends_of_words(solution)
    target = share * len(solution)
    cut = min([0, *ends], key=lambda end: abs(end - target))
    return solution[:cut]


def _ends_of_words(text: str) -> list[int]:
    text = text.rstrip()
    answer = ANSWER.search(text)
    limit = answer.start() if answer else text.rfind("\n") if "\n" in text else len(text) - 1
    return [word.end() for word in WORD.finditer(text) if word.end() <= limit]


def _ends_of_statements(solution: str) -> list[int]:
    """Return the end offset of each line that ends a simple statement, except the last; empty for invalid programs."""
    block = BLOCK.search(solution)
    source, offset = (block[1], block.start(1)) if block else (solution, 0)
    try:
        nodes = ast.walk(ast.parse(source))
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return []
    simple = {
        node.end_lineno
        for node in nodes
        if isinstance(node, ast.stmt) and node.end_lineno is not None and not hasattr(node, "body")
    }
    lines = source.splitlines(keepends=True)
    return [offset + len("".join(lines[:number]).rstrip("\r\n")) for number in sorted(simple)[:-1]]
