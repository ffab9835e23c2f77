"""How many examples should a step of a lesson have? The same examples once each, in batches of several sizes.

    python -m benchmarks.lesson_batches --student FOLDER [--config conf/ants.yaml] [--batches 8 4 2 1] [--rates 1e-3]

Trains the student on its benchmarks' reference solutions, with each batch size and each learning rate, which falls
linearly to 0. Prints the seconds of each lesson and its loss on the solutions to other problems.
"""

import argparse
import itertools
import json
import tempfile
import time
from pathlib import Path
from statistics import fmean
from typing import Any

from benchmarks.outputs.page import markdown
from conf.load import load_night
from conf.schema import NightConfig
from conf.sections.lessons import DistillConfig
from models.hf.loading import load_tokenizer
from models.lessons.preference_data import EpisodeExample, Example
from models.lessons.sft_preference import imitation
from models.trainer import Trainer
from rewards.data.benchmarks import configured
from tasks.distillation.demonstrations import example_maker
from tasks.distillation.trace_filter import read_traces
from tasks.distillation.trace_sources import reference_solutions
from tasks.training.trainer_process import lesson_config

Examples = list[Example | EpisodeExample]
EACH = 4  # solutions drawn for each one needed, because those to a held-out problem are not taught


def main() -> None:
    """Teach each lesson, and print the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--config", type=Path, default=Path("conf/ants.yaml"))
    parser.add_argument("--student", type=Path, required=True, help="a model folder")
    parser.add_argument("--examples", type=int, default=480)
    parser.add_argument("--held-out", type=int, default=40)
    parser.add_argument("--batches", type=int, nargs="+", default=[8, 4, 2, 1])
    parser.add_argument("--rates", type=float, nargs="+", default=[1e-3])
    parser.add_argument("--set", nargs="*", default=[], dest="settings")
    options = parser.parse_args()
    config, rows = load_night(options.config, options.settings), []
    taught, asked = examples(config, options.student, options.examples, options.held_out)
    for rate, batch in itertools.product(options.rates, options.batches):
        steps = len(taught) // batch
        lesson = DistillConfig(steps=steps, batch_size=batch, learning_rate=rate, schedule="linear", max_epochs=1)
        trainer = Trainer.load(options.student, lesson_config(config.trainer, rate))
        began = time.perf_counter()
        list(imitation(trainer, taught, lesson, config.seed))
        seconds = time.perf_counter() - began
        trainer.weights.rate_factor = 0.0  # steps that only measure
        rows.append([batch, rate, steps, f"{seconds:.0f}", f"{fmean(trainer.imitate([e])['loss'] for e in asked):.3f}"])
        print(json.dumps(rows[-1]), flush=True)
    print(markdown("examples a step | learning rate | steps | seconds | held-out loss (nats a token)", rows))


def examples(config: NightConfig, student: Path, count: int, held_out: int) -> tuple[Examples, Examples]:
    """Return examples to learn, and the solutions to so many other problems, drawn with the configuration's seed."""
    with tempfile.TemporaryDirectory() as folder:
        drawn: dict[str, Any] = {"count": EACH * (count + held_out), "seed": str(config.seed)}
        reference_solutions.write(Path(folder), sources=config.benchmarks, sandbox=config.sandbox, **drawn)
        traces = list(read_traces(Path(folder)))
    asked, rest = traces[:held_out], traces[held_out:]
    taught = [trace for trace in rest if trace.source not in {other.source for other in asked}][:count]
    tokenizer = load_tokenizer(student, config.student.trust_remote_code)
    benchmarks = [configured(entry, config.sandbox) for entry in config.benchmarks]
    example = example_maker(benchmarks, tokenizer, config.student, config.engine.max_model_len)
    return [*map(example, taught)], [*map(example, asked)]


if __name__ == "__main__":
    main()
