"""Turn a teacher's episodes into training examples: the loss covers the teacher's turns, and the rest is context."""

from collections.abc import Callable, Iterable, Mapping

from conf.schema import StudentConfig
from models.hf.bridge import Bridge
from models.hf.loading import Tokenizer, answer_tokens, prompt_tokens
from models.lessons.preference_data import EpisodeExample, Example
from models.transcript import Transcript, joined
from rewards.environment import Environment
from rewards.environments.episodes import replay, weighted_texts
from rewards.verifier import Benchmark, Problem
from tasks.distillation.trace_filter import DATASET, Trace


def example_maker(
    benchmarks: Iterable[Benchmark], tokenizer: Tokenizer, student: StudentConfig, most: int
) -> Callable[[Trace], Example | EpisodeExample]:
    """Return a function that turns a trace into a training example: an episode, or a prompt with its answer.

    `most`: how many tokens a context of an episode may have.
    """
    demonstrations = {
        benchmark.name: Demonstrations(benchmark.environment, tokenizer, student, most)
        for benchmark in benchmarks
        if benchmark.environment is not None
    }

    def example(trace: Trace) -> Example | EpisodeExample:
        if trace.benchmark in demonstrations:
            return demonstrations[trace.benchmark].example(trace)
        return prompt_tokens(tokenizer, trace.messages, student), answer_tokens(tokenizer, trace.response)

    return example


class Demonstrations:
    """Turns an environment's traces, whose responses are JSON lists of the teacher's turns, into training examples.

    Raises InputError if the student's chat template cannot continue a conversation after an answer.
    """

    def __init__(self, environment: Environment, tokenizer: Tokenizer, student: StudentConfig, most: int) -> None:
        self.environment, self.tokenizer, self.student, self.most = environment, tokenizer, student, most
        self.bridge = Bridge(tokenizer, student)
        self.problems: Mapping[str, Problem] = {one.problem_id: one for one in environment.problems("train")}

    def example(self, trace: Trace) -> EpisodeExample:
        """Return the first observation's tokens, all later ones, a mask of which of these to train on, and windows."""
        if trace.teacher != DATASET:  # a line of a journal or a file does not tell which problem it solves
            raise LookupError(trace.source)
        problem = self.problems[(trace.source or "").partition(":")[2]]
        written_turns = weighted_texts(trace.response)
        turns = replay(self.environment, problem, [text for text, _ in written_turns])
        transcripts = [Transcript(prompt_tokens(self.tokenizer, trace.messages, self.student))]
        for number, (turn, (_, weight)) in enumerate(zip(turns, written_turns, strict=False)):
            written = answer_tokens(self.tokenizer, turn.text)
            if turn.agent == len(transcripts):
                messages = [{"role": "user", "content": turn.observation}]
                transcripts.append(Transcript(prompt_tokens(self.tokenizer, messages, self.student)))
            elif number and not transcripts[turn.agent].saw(self.bridge(turn.observation), self.most - len(written)):
                break
            transcripts[turn.agent].wrote(written, [0.0] * len(written), counts=weight > 0)
        whole = joined(transcripts)
        return EpisodeExample(whole.prompt, whole.token_ids, whole.loss_mask, whole.windows)
