"""The classroom's engine: the process that writes answers, and the socket through which it streams them."""

import asyncio
import json
from collections.abc import AsyncGenerator, Callable, Sequence
from concurrent.futures import wait
from contextlib import suppress
from pathlib import Path

from conf.schema import NightConfig
from conf.sections.teaching import DAY_ADAPTER
from models.engine.environment import engine_environment
from tasks.teaching import writing
from tasks.teaching.writing import Champion, Messages, Written
from tasks.workers.worker import P, R, Worker, WorkerDiedError, WorkerEndedError

POLL = 0.5  # seconds
ANSWERS = 16  # the most answers that are written at once
CACHE = 0.25  # GiB of KV cache for these answers on a CPU
ENDED = "the engine ended; ask again in a moment"


class Engine:
    """A process that holds two models: the champion, and the day copy as an adapter on the champion."""

    def __init__(self, champion: Path, config: NightConfig, folder: Path, log: Path) -> None:
        """Start the engine. `folder`: where its socket is created. Each classroom needs a folder of its own."""
        self.champion, self.has_adapter = champion, False
        self.stop = asyncio.Event()  # while it is set, `write` ends early
        self._socket = folder / "answers"
        self._worker = Worker("engine", engine_environment(), log)
        small = {"lora": DAY_ADAPTER, "max_num_seqs": ANSWERS, "kv_cache_gb": CACHE}
        settings = config.sampler.model_copy(update=small)
        self._model, self._longest = Champion(champion, settings, config.student), config.teach.max_answer_tokens
        self._start = self._worker.submit(writing.load, self._model)

    def wait_until_healthy(self, wanted: Callable[[], bool]) -> bool:
        """Return True once the champion is loaded, or False once `wanted()` is false. Raises any loading error."""
        while wanted():
            if wait([self._start], POLL).done:
                self._worker.result(self._start)
                return True
        return False

    @property
    def running(self) -> bool:
        """Whether the engine's process has neither ended nor been stopped."""
        return self._worker.running and not self._worker.lost

    def end(self) -> None:
        """Stop the engine. Unfinished answers are lost."""
        self._worker.end()

    async def use_adapter(self, adapter: Path | None) -> None:
        """Set the day copy's adapter. With None, the day copy answers as the champion does."""
        await asyncio.to_thread(self._call, writing.use_adapter, self._model, adapter)
        self.has_adapter = adapter is not None

    async def write(
        self, messages: Messages, by_day_copy: Sequence[bool], temperature: float, begun: str = ""
    ) -> AsyncGenerator[tuple[int, str] | list[Written]]:
        """Write answers to a conversation. Yield each piece as (answer number, text), and finally the whole answers.

        `by_day_copy`: for each answer, True if the day copy writes it, False if the champion does. Setting `stop` ends
        the answers early. `begun`: the text with which the answers begin; only what follows is returned. Raises
        ValueError if there can be no answer, and WorkerEndedError if the engine ends.
        """
        pieces: asyncio.Queue[tuple[int, str] | None] = asyncio.Queue()
        writers: list[asyncio.StreamWriter] = []

        async def read(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            writers.append(writer)
            if self.stop.is_set():
                writer.close()
            with suppress(ConnectionError):
                async for line in reader:
                    pieces.put_nowait(tuple(json.loads(line)))

        async def end_when_stopped() -> None:
            await self.stop.wait()
            for writer in writers:
                writer.close()

        self._socket.unlink(missing_ok=True)
        server = await asyncio.start_unix_server(read, self._socket)
        stopping = asyncio.ensure_future(end_when_stopped())
        asked = self._model, self._socket, messages, by_day_copy, self._longest, temperature, begun
        call = asyncio.ensure_future(asyncio.to_thread(self._call, writing.write, *asked))
        call.add_done_callback(lambda _: pieces.put_nowait(None))
        try:
            while (piece := await pieces.get()) is not None:
                yield piece
            yield await call
        finally:
            stopping.cancel()
            server.close()
            for writer in writers:
                writer.close()
            await asyncio.wait({call})  # until the engine is free again

    def _call(self, function: Callable[P, R], *args: P.args, **kwargs: P.kwargs) -> R:
        if self.running:  # otherwise, a call would start a process without the champion
            with suppress(WorkerDiedError, WorkerEndedError):
                return self._worker.call(function, *args, **kwargs)
        raise WorkerEndedError(ENDED)
