"""The exam's guard: what holds a question of the exam is no lesson, or the exam would prove nothing."""

from collections.abc import Sequence


def holds_exam_question(text: str, exam_questions: Sequence[str]) -> bool:
    """Whether a question of the exam stands in a text, word for word."""
    return any(question in text for question in exam_questions)


def conversation(messages: Sequence[dict[str, str]]) -> str:
    """All that was said in a conversation, as one text."""
    return "\n".join(message["content"] for message in messages)
