"""Compute the tokens between two answers of a conversation, so that sampled answers are never tokenized again."""

from conf.schema import StudentConfig
from conf.storage.home import InputError
from models.hf.loading import Tokenizer, answer_tokens, encode, prompt_tokens, rendered_prompt

QUESTION, ANSWER, NEXT = "question-1", "<think>\nthought-1\n</think>\n\nanswer-1", "question-2"


class Bridge:
    """Turns a user message into the tokens that follow an answer, up to the start of the next answer.

    The text around the message is found once, by rendering a sample conversation with the chat template. Raises
    InputError if the template does more than append: one that changes earlier answers (Qwen3's removes their thoughts)
    would show the model a different history from the one that it was trained on.
    """

    def __init__(self, tokenizer: Tokenizer, student: StudentConfig) -> None:
        self.tokenizer = tokenizer
        first = [{"role": "user", "content": QUESTION}]
        talk = [*first, {"role": "assistant", "content": ANSWER}, {"role": "user", "content": NEXT}]
        begun, whole = (rendered_prompt(tokenizer, messages, student) for messages in (first, talk))
        after = whole.rpartition(ANSWER)[2]
        appends = whole.startswith(begun) and ANSWER in whole and after.count(NEXT) == 1
        end = str(tokenizer.eos_token)
        self.has_end = after.startswith(end)
        self.before, _, self.after = after.removeprefix(end).partition(NEXT)
        tokens = [*prompt_tokens(tokenizer, first, student), *answer_tokens(tokenizer, ANSWER), *self(NEXT)]
        if not appends or (self.has_end and tokens != prompt_tokens(tokenizer, talk, student)):
            raise InputError(
                "student: its chat template changes earlier answers when a conversation goes on, so episodes of "
                "several turns would not be what was sampled; give another in student.chat_template, as "
                "conf/ants_qwen3.yaml does"
            )

    def __call__(self, text: str, *, ended: bool = True) -> list[int]:
        """Return the tokens after an answer to which the user replies `text`. `ended`: whether it has its end token."""
        following = encode(self.tokenizer, f"{self.before}{text}{self.after}")
        return following if ended else [*answer_tokens(self.tokenizer, ""), *following]
