"""The parts of benchmarks/gpu.py that need vLLM: the engine, and a short night."""

import tempfile
import time
from pathlib import Path

from benchmarks.machine.gauge import CUDA
from benchmarks.machine.gpu_parts import RANK, Rows, trained


def engine(student: Path | None) -> Rows:
    """Start vLLM, sample one seed twice, sleep and wake ten times, and reload weights and adapters."""
    from benchmarks.inputs.workloads import WORKLOADS
    from conf.schema import EngineConfig, LoraConfig
    from models.hf.checkpoint import keep, write_lineage
    from models.hf.starter import write_starter
    from models.sampler import Sampler

    with tempfile.TemporaryDirectory() as temporary:
        checkpoints = Path(temporary)
        write_starter(checkpoints / "draft")
        write_lineage(checkpoints / "draft", None)
        base = keep(checkpoints / "draft", checkpoints)
        adapters = LoraConfig(rank=RANK)
        trainer, rollouts, advantages = trained(base, None, adapters, WORKLOADS["short"])
        trainer.update(rollouts, advantages)
        trainer.save_adapter(checkpoints / "draft")
        write_lineage(checkpoints / "draft", base.name, base.name)
        adapter = keep(checkpoints / "draft", checkpoints)
        del trainer
        started = time.perf_counter()
        sampler = Sampler(base, EngineConfig(lora=adapters, gpu_memory_share=0.5))
        yield "start", f"{time.perf_counter() - started:6.1f} s"
        prompts = [rollout.prompt_token_ids for rollout in rollouts[::8]]
        for checkpoint, name in ((base, "weights"), (adapter, "adapter"), (base, "weights"), (adapter, "adapter")):
            started = time.perf_counter()
            sampler.use(checkpoint)
            yield f"load {name}", f"{time.perf_counter() - started:6.2f} s, probe {sampler.probe_difference:.4f} nats"
        one, two = (sampler.sample(prompts, 8, seed=1, max_tokens=48) for _ in range(2))
        yield "one seed twice", "the same completions" if one == two else "different completions"
        for each in (True, False):  # with a seed for each request, vLLM draws request by request
            sampler._cuda, started = CUDA and each, time.perf_counter()
            tokens = sum(
                len(row.token_ids) for rows in sampler.sample(prompts, 32, seed=2, max_tokens=48) for row in rows
            )
            rate = tokens / (time.perf_counter() - started)
            yield f"sample, {'a seed for each request' if each else 'one seed'}", f"{rate:,.0f} tokens/s"
        sampler._cuda = CUDA
        for number in range(10 if CUDA else 1):
            started = time.perf_counter()
            sampler.sleep()
            asleep = time.perf_counter()
            sampler.use(adapter)
            seconds = f"{asleep - started:5.2f} s, wake {time.perf_counter() - asleep:5.2f} s"
            same = "the same" if sampler.sample(prompts, 8, seed=1, max_tokens=48) == one else "different"
            yield f"sleep {number + 1}", f"{seconds}, probe {sampler.probe_difference:.4f} nats, {same} completions"


def night(student: Path | None) -> Rows:
    """Run a night of conf/nightly.yaml with 2 rounds and small exams."""
    from benchmarks.nights.whole import whole_night
    from conf.load import STARTER
    from flows.run.history import read_round_metrics

    few = "exam={target: {benchmark: gsm8k, problems: 50}, max_completion_tokens: 256}"
    with tempfile.TemporaryDirectory() as home:
        own = [f"student.source={student.resolve()}"] if student else []
        settings = (*own, "grpo.rounds=2", "distill.steps=4", few)
        summary = whole_night(Path(home), *settings, config=STARTER.with_name("nightly.yaml"))
        yield "minutes", f"{summary['minutes']:.1f}"
        yield "rounds", str(summary["rounds"])
        for metrics in read_round_metrics(summary["folder"]):
            yield "seconds of generate and update", f"{metrics['seconds_generate']:.1f} {metrics['seconds_update']:.1f}"
