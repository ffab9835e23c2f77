"""The whole program of a completed function: the prompt with its body, or the program as it was written."""

import re

from rewards.programs.extraction import last_block, program_text

# Where a continued body ends: the stop sequences of HumanEval (Chen et al. 2021, section 2.1) and EvalPlus (Liu et al.
# 2023, arXiv:2305.01210). A model that is not stopped there continues with the next function, or chats.
STOP = re.compile(r"\n(?:class|def|if|print|import|from|assert)\b|\n(?:#|@|```|~~~)")
FENCES = ("```", "~~~")
FUTURE = re.compile(r"^from[ \t]+__future__\b", re.MULTILINE)


def whole_program(completion: str, prompt: str, entry_point: str) -> str | None:
    """Return the program that a completion of `prompt` forms; None where it is blank. Takes linear time.

    A fenced block that defines `entry_point` is a whole program. Otherwise a text, or else a block, that begins
    indented is the body that continues the prompt, up to the usual stop sequences. Anything else is a whole program. A
    whole program gets the prompt's imports and helpers, which a function completed in place has as well.
    """
    completion = completion.replace("\r\n", "\n")
    fenced = last_block(completion)
    if fenced is None or not definition(entry_point).search(fenced):
        if _indented(completion):
            return _continued(prompt, completion)
        if fenced is not None and _indented(fenced):
            return _continued(prompt, fenced)
    program = program_text(completion)
    if program is None or FUTURE.search(program):  # must come first, and makes missing types harmless
        return program
    return f"{preamble(prompt, entry_point) or ''}\n{program}"


def preamble(prompt: str, entry_point: str) -> str | None:
    """Return the part of the prompt before it defines `entry_point`: imports and helpers. None if it does not."""
    head = definition(entry_point).search(prompt)
    return None if head is None else prompt[: head.start()]


def definition(name: str) -> re.Pattern[str]:
    """Return the pattern of a function's definition at the top level."""
    name = re.escape(name)
    return re.compile(rf"^(?:(?:async[ \t]+)?def[ \t]+{name}\b|{name}[ \t]*=(?!=))", re.MULTILINE)


def _continued(prompt: str, body: str) -> str:
    lines = body.strip("\n")
    stop = STOP.search(lines)
    return prompt.rstrip("\n") + "\n" + lines[: stop.start() if stop else len(lines)] + "\n"


def _indented(text: str) -> bool:
    """Return whether the first line that is not blank is indented and not a fence."""
    content = text.lstrip(" \t\n")
    before = text[: len(text) - len(content)].rpartition("\n")[2]
    return bool(content and before) and not content.startswith(FENCES)
