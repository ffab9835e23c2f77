"""`nightschool blame`: what made an answer likely."""

from typing import Annotated

import typer

from conf.storage.home import Home, InputError
from conf.storage.locks import refuse_if_night_running
from flows.commands.options import AsJson, Config, Overrides, configuration, print_json


def blame(
    question: Annotated[str, typer.Argument(help="the question")],
    answer: Annotated[str | None, typer.Argument(help="the answer; default: what today's copy answers")] = None,
    config: Config = None,
    overrides: Overrides = None,
    as_json: AsJson = False,
) -> None:
    """Show how likely an answer was under each champion that is kept, and after each of the day's lessons."""
    if not question.strip():
        raise InputError("QUESTION: is blank")
    home, settings = Home.here(), configuration(config, overrides)
    refuse_if_night_running(home.root)
    from flows.serving.supervisor import daytime  # after the first checks: the libraries take seconds to import
    from flows.serving.vllm_server import whole_model
    from flows.teaching.blame import history
    from flows.teaching.day import Day
    from tasks.teaching import learner_process

    _, version = daytime(home, settings)
    champion = whole_model(home.checkpoints / version.digest, home, settings.student.trust_remote_code)
    messages = [{"role": "user", "content": question}]
    day, longest = Day(home, settings, champion), settings.teach.max_answer_tokens
    try:
        text, finished = (answer, True) if answer else day.ask(learner_process.greedy_answer, messages, longest)
        steps = history(day, messages, text, finished)
    finally:
        day.end()
    if as_json:
        print_json({"answer": text, "steps": steps})
        return
    print(text)
    for step in steps:
        print(f"{step['logprob']:9.1f} {step['moved']:+7.1f}  {step['kind']:10}  {' '.join(step['what'].split())[:80]}")
    print("Log-probability and its change, in nats. `nightschool teach` can undo a lesson.")
