"""Runs `vllm serve` as a child process that serves one checkpoint on a Unix socket."""

import json
import shutil
import signal
import tempfile
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from pathlib import Path

import httpx

from conf.schema import NightConfig, StudentConfig
from conf.sections.teaching import DAY_ADAPTER
from conf.storage.home import Home, NightError
from conf.storage.journal import TODAY
from flows.run.child import end_child, start_child
from models.engine.adapters import linear_layers
from models.engine.environment import CPU_BLOCK, SERVER, server_environment
from models.hf.checkpoint import base_of, is_adapter, learned, write_learned
from models.hf.hardware import GIB, compute_dtype
from models.hf.loading import load_tokenizer
from tasks.workers.worker import call_once

NAME = "daytime"  # the model name that clients send; answers name the checkpoint's digest instead
SOCKET, TEMPLATE = "socket", "template.jinja"  # files in the server's folder
START_LIMIT = 900.0  # seconds; on a GPU, vLLM captures CUDA graphs before it answers
STOP_LIMIT = 20.0  # seconds
MERGE_LIMIT = 900.0  # seconds
POLL = 0.5  # seconds


class EngineFailedError(NightError):
    """vLLM exited before it was ready, or took too long to start. The one-line message quotes the log's last line."""


class EngineServer:
    """A `vllm serve` process that listens only on the Unix socket `socket`."""

    def __init__(
        self,
        checkpoint: Path,
        config: NightConfig,
        folder: Path,
        log: Path,
        holds: Sequence[int],
        today: Path | None = None,
    ) -> None:
        """Start the server, with its socket in `folder`. `holds`: file descriptors that it inherits and keeps open.

        `today`: the day copy's adapter, to be served beside the checkpoint; None if there is none.
        """
        self.socket, self.log = folder / SOCKET, log
        self.socket.unlink(missing_ok=True)
        (folder / TEMPLATE).write_text(template(checkpoint, config.student))
        environment = server_environment()
        environment.pop("VLLM_API_KEY", None)  # the gate checks the key
        # if this process dies, the server gets SIGTERM: SIGKILL would leave vLLM's engine process behind
        self.process = start_child(
            command(checkpoint, config, folder, today), environment, log, signal.SIGTERM, pass_fds=holds
        )

    @property
    def running(self) -> bool:
        """Whether the server's process is alive."""
        return self.process.poll() is None

    def wait_until_healthy(self, wanted: Callable[[], bool]) -> bool:
        """Return True once vLLM answers, or False once `wanted()` is false. Raises EngineFailedError if vLLM fails."""
        limit = time.monotonic() + START_LIMIT
        with httpx.Client(transport=httpx.HTTPTransport(uds=str(self.socket)), timeout=10) as client:
            while wanted():
                if not self.running or time.monotonic() > limit:
                    last_line = self.log.read_text(errors="replace").strip().rpartition("\n")[2][:300]
                    raise EngineFailedError(f"vLLM does not start; {self.log} says why; its last line: {last_line}")
                with suppress(httpx.TransportError):
                    if client.get("http://engine/health").is_success:
                        return True
                time.sleep(POLL)
        return False

    def end(self) -> None:
        """Stop the server and every process that it started. Unfinished answers are lost."""
        end_child(self.process, STOP_LIMIT)


def command(checkpoint: Path, config: NightConfig, folder: Path, today: Path | None = None) -> list[str]:
    """Return the command line of `vllm serve` for a checkpoint, with the same engine settings as at night.

    The model name in vLLM's answers is the first served name: the checkpoint's digest, called `policy` in the journal.
    """
    import torch  # takes 100 MB that the classroom can do without

    engine, cuda = config.engine, torch.cuda.is_available()
    dtype = "float32" if compute_dtype(torch.device("cuda" if cuda else "cpu")) == torch.float32 else "bfloat16"
    words = [*SERVER, "--model", str(checkpoint), "--uds", str(folder / SOCKET)]
    words += ["--served-model-name", checkpoint.name, NAME, "--dtype", dtype]
    words += ["--load-format", "safetensors"]  # files in other formats can run code when they are loaded
    words += ["--generation-config", "vllm"]  # the same sampling defaults as at night
    words += ["--max-model-len", str(engine.max_model_len), "--max-num-seqs", str(engine.max_num_seqs)]
    words += ["--gpu-memory-utilization", str(engine.gpu_memory_share), "--chat-template", str(folder / TEMPLATE)]
    words += ["--default-chat-template-kwargs", json.dumps(config.student.template_arguments)]
    words += ["--disable-uvicorn-access-log"]
    if today:
        words += ["--enable-lora", "--max-lora-rank", str(DAY_ADAPTER.rank), "--lora-modules", f"{TODAY}={today}"]
        words += ["--lora-target-modules", *linear_layers(checkpoint)]
    if not cuda:
        words += ["--enforce-eager", "--block-size", str(CPU_BLOCK)]
        words += ["--kv-cache-memory-bytes", str(int(engine.kv_cache_gb * GIB))]
    words += ["--trust-remote-code"] if config.student.trust_remote_code else []
    return words


def template(checkpoint: Path, student: StudentConfig) -> str:
    """Return a checkpoint's chat template (a plain one if it has none), with any configured system prompt prepended."""
    text = load_tokenizer(checkpoint, student.trust_remote_code).get_chat_template()
    if student.system is None:
        return text
    system = json.dumps([{"role": "system", "content": student.system}], ensure_ascii=False)
    return f"{{%- set messages = {system} + messages %}}{text}"


def whole_model(checkpoint: Path, home: Home, trust_remote_code: bool) -> Path:
    """Return a checkpoint's folder or, if it is an adapter, the folder of its merged copy under `merged/` in the home.

    Serving and teaching by day need a whole model, not an adapter on a base. The merged copy is named after the
    adapter's digest, so that its answers count as the champion's.
    """
    if not is_adapter(checkpoint):
        return checkpoint
    merged = home.root / "merged"
    target = merged / checkpoint.name
    if not target.exists():
        from models.hf.merging import merge

        merged.mkdir(exist_ok=True)
        with tempfile.TemporaryDirectory(prefix=".draft-", dir=merged) as folder:
            draft = Path(folder, target.name)
            call_once("merging", MERGE_LIMIT, merge, base_of(checkpoint), checkpoint, draft, trust_remote_code)
            with suppress(OSError):  # another process was first
                draft.rename(target)
    write_learned(target, learned(checkpoint))  # or the classroom would teach it all again
    return target


def delete_other_merged(home: Home, whole: Path) -> None:
    """Delete all merged copies but one."""
    for copy in (home.root / "merged").glob("[!.]*"):
        if copy != whole:
            shutil.rmtree(copy)
