"""How much of our code a default round runs: the files, and our frames from `Rounds._round` to `LLM.generate`.

`python -m benchmarks.house` runs a starter night of one round with a profile hook in each of its processes and threads.
"""

import inspect
import json
import os
import sys
import tempfile
import threading
from pathlib import Path
from types import FrameType

ROOT = Path(__file__).parents[1]
OURS = tuple(f"{ROOT}/{folder}/" for folder in ("flows", "tasks", "rewards", "models", "conf"))
ROUND, HOPS = "Rounds._round", ("ThreadPoolExecutor.submit", "ProcessPoolExecutor.submit", "LLM.generate")


def main() -> None:
    """Run the night, and print the files and frames that its processes noted."""
    from benchmarks.nights.timed import FEW_ROUNDS, run_night

    with tempfile.TemporaryDirectory() as folder:
        Path(folder, "sitecustomize.py").write_text(f"from benchmarks import house\nhouse.watch({folder!r})\n")
        os.environ["PYTHONPATH"] = f"{folder}:{ROOT}"  # each process imports sitecustomize as it starts
        run_night(Path(folder, "home"), [*FEW_ROUNDS, "distill.steps=8", "grpo.rounds=1"])
        noted = dict(json.loads(line) for file in Path(folder).glob("*.jsonl") for line in file.open())
    frames = [noted.pop(hop, []) for hop in HOPS]
    print(f"{len(noted)} files:", *sorted(name.removeprefix(f"{ROOT}/") for name in noted), sep="\n  ")
    print(f"{sum(map(len, frames))} frames:", *(" → ".join(path) for path in frames), sep="\n  ")


def watch(folder: str) -> None:
    """From now on, note in `folder` which code runs in this process (in any thread) while a round is under way."""
    under_way, notes, seen = Path(folder, "round"), Path(folder, f"{os.getpid()}.jsonl"), set[str]()

    def hook(frame: FrameType, event: str, _: object) -> None:
        code = frame.f_code
        if code.co_qualname == ROUND and event in ("call", "return"):
            under_way.touch() if event == "call" else under_way.unlink()
        is_hop = code.co_qualname in HOPS
        is_function = code.co_filename.startswith(OURS) and code.co_flags & inspect.CO_OPTIMIZED  # no module, no class
        name = code.co_qualname if is_hop else code.co_filename
        if event == "call" and (is_hop or is_function) and name not in seen and under_way.exists():
            path: list[str] = []
            while is_hop and frame.f_back and (code := frame.f_code).co_qualname != ROUND:
                path = [code.co_qualname, *path] if code.co_filename.startswith(OURS) else path
                frame = frame.f_back
            if name != HOPS[0] or "sample" in path:  # Prefect has pools, too
                seen.add(name)
                with notes.open("a") as file:
                    print(json.dumps([name, path]), file=file)

    threading.setprofile(hook)
    sys.setprofile(hook)


if __name__ == "__main__":
    main()
