"""What stands between two answers: token for token the chat template's, and a refusal where that changes the past."""

from pathlib import Path
from typing import Any

import pytest

from conf.schema import StudentConfig
from conf.storage.home import InputError
from models.hf.bridge import Bridge
from models.hf.loading import PLAIN_TEMPLATE, answer_tokens, load_tokenizer, prompt_tokens

STUDENT = StudentConfig(system="")
CHATML = (
    "{% for message in messages %}{{ message['role'] }}\n{{ message['content'] }}<end>\n{% endfor %}"
    "{% if add_generation_prompt %}assistant\n{% endif %}"
)
WITHOUT_THOUGHTS = CHATML.replace("message['content']", "message['content'].split('</think>')[-1]")


@pytest.fixture
def tokenizer(folder: Path) -> Any:
    """A tokenizer of its own, whose template a test may change."""
    loaded: Any = load_tokenizer(folder)
    before, end = loaded.chat_template, loaded.eos_token
    yield loaded
    loaded.chat_template, loaded.eos_token = before, end


def test_a_conversation_is_the_templates_token_for_token(tokenizer: Any) -> None:
    tokenizer.chat_template = CHATML
    talk = [{"role": "user", "content": "one"}]
    tokens = prompt_tokens(tokenizer, talk, STUDENT)
    bridge = Bridge(tokenizer, STUDENT)
    for answer, question in (("1", "two"), ("2 ", "three\nlines\n"), ("", "four")):
        talk += [{"role": "assistant", "content": answer}, {"role": "user", "content": question}]
        tokens += [*answer_tokens(tokenizer, answer), *bridge(question)]
        assert tokens == prompt_tokens(tokenizer, talk, STUDENT)


def test_an_answer_that_was_cut_gets_its_end(tokenizer: Any) -> None:
    bridge = Bridge(tokenizer, STUDENT)
    assert bridge("more", ended=False) == [tokenizer.eos_token_id, *bridge("more")]


def test_a_template_without_an_end_token(tokenizer: Any) -> None:
    tokenizer.chat_template = PLAIN_TEMPLATE
    assert tokenizer.decode(Bridge(tokenizer, STUDENT)("more")) == "\nUser: more\nAssistant:"


@pytest.mark.parametrize(
    "template", [WITHOUT_THOUGHTS, CHATML + "{{ messages | length }}", "{{ messages[-1]['content'] }}"]
)
def test_a_template_that_changes_the_past_is_refused(tokenizer: Any, template: str) -> None:
    tokenizer.chat_template = template
    with pytest.raises(InputError, match="chat template"):
        Bridge(tokenizer, STUDENT)
