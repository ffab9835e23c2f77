"""A completed function, made a whole program: from the body that continues its prompt, or from a program as it is."""

import re

from rewards.programs.extraction import last_block, program_text

# Where a continued body ends: the stop sequences of HumanEval (Chen et al. 2021, section 2.1) and those that EvalPlus
# (Liu et al. 2023, arXiv:2305.01210) adds. A model that was not stopped there goes on with the next function, or chats.
STOP = re.compile(r"\n(?:class|def|if|print|import|from|assert)\b|\n(?:#|@|```|~~~)")
FENCES = ("```", "~~~")
FUTURE = re.compile(r"^from[ \t]+__future__\b", re.MULTILINE)


def whole_program(completion: str, prompt: str, entry_point: str) -> str | None:
    """The program that a completion of `prompt` amounts to; None where it is blank. Linear in the length of the text.

    A fenced block that defines `entry_point` is a whole program. Otherwise a text, or else a block, that begins
    indented is the body that continues the prompt, up to where the usual stop sequences end it. Anything else is taken
    for a whole program. That gets the prompt's imports and helpers, as the function has when it is completed in place.
    """
    completion = completion.replace("\r\n", "\n")
    fenced = last_block(completion)
    if fenced is None or not definition(entry_point).search(fenced):
        if _indented(completion):
            return _continued(prompt, completion)
        if fenced is not None and _indented(fenced):
            return _continued(prompt, fenced)
    program = program_text(completion)
    if program is None or FUTURE.search(program):  # it must come first, and makes missing types harmless
        return program
    return f"{preamble(prompt, entry_point) or ''}\n{program}"


def preamble(prompt: str, entry_point: str) -> str | None:
    """The prompt's imports and helper functions: all before it defines `entry_point`; None where it does not."""
    head = definition(entry_point).search(prompt)
    return None if head is None else prompt[: head.start()]


def definition(name: str) -> re.Pattern[str]:
    """Where a program defines a function at its top level."""
    name = re.escape(name)
    return re.compile(rf"^(?:(?:async[ \t]+)?def[ \t]+{name}\b|{name}[ \t]*=(?!=))", re.MULTILINE)


def _continued(prompt: str, body: str) -> str:
    lines = body.strip("\n")
    stop = STOP.search(lines)
    return prompt.rstrip("\n") + "\n" + lines[: stop.start() if stop else len(lines)] + "\n"


def _indented(text: str) -> bool:
    """Whether the first line that is not blank begins with white space, and is no fence."""
    content = text.lstrip(" \t\n")
    before = text[: len(text) - len(content)].rpartition("\n")[2]
    return bool(content and before) and not content.startswith(FENCES)
