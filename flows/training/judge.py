"""The learned reward of a night's rounds: a judge's where one serves, else the reward model's."""

from collections.abc import Sequence
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from conf.schema import NightConfig
from conf.sections.lessons import EndpointConfig, JudgeConfig
from conf.storage.durable import make_folder
from conf.storage.home import NightError
from flows.evaluation.models import engine_for
from flows.run.budget import end_of_asking
from flows.run.context import Night, log
from flows.serving.vllm_server import EngineServer, whole_model
from flows.training.reward_model import LearnedReward
from models.hf.teacher_client import CONCURRENT_REQUESTS, LOCAL
from rewards.verifier import Problem
from tasks.monitoring.tracking import Tracking
from tasks.registry.import_model import check_loads, find_model
from tasks.reward_model.judge_stages import examine_judge, figures
from tasks.stage import Artifact, committed

CHAMPION = "champion"  # as `judge.checkpoint`
# Of a judge in a folder: the tokens of a request with its reply, as far as the model can, and its share of the GPU's
# memory, besides that of `engine`.
CONTEXT_TOKENS, GPU_MEMORY_SHARE = 4096, 0.3


class Judge:
    """The night's judge. One in a folder is served as long as the night lasts, from here on."""

    def __init__(self, night: Night, config: JudgeConfig, champion: Path) -> None:
        self.night = night
        self.server: EngineServer | None = None
        if config.endpoint is not None:
            self.endpoint = config.endpoint
            return
        if is_champion := config.checkpoint == CHAMPION:
            checkpoint = whole_model(champion, night.home, night.config.student.trust_remote_code)
        else:
            checkpoint = find_judge(str(config.checkpoint))
        self.endpoint = EndpointConfig(base_url=LOCAL, model=checkpoint.name)
        folder = night.closing.enter_context(TemporaryDirectory(prefix="nightschool-"))  # a socket's path is short
        make_folder(night.folder / "logs")
        log_file = night.folder / "logs" / "judge.log"
        served = settings(night.config, checkpoint, trusted=is_champion)
        self.server = EngineServer(checkpoint, served, Path(folder), log_file, ())
        night.closing.callback(self.server.end)

    def arguments(self) -> dict[str, Any]:
        """Return the judge's part of a stage's arguments."""
        night = self.night
        until = end_of_asking(night.hours, night.config, night.folder, night.last)
        local = self._socket if self.server else None
        shared = {"date": night.date, "cache": night.home.teacher, "until": until, "local": local}
        return {"endpoint": self.endpoint, **shared}

    def _socket(self) -> Path:
        """Return the socket file of the judge's server once it answers, or has failed: then it ranks nothing."""
        assert self.server is not None
        try:
            self.server.wait_until_healthy(lambda: True)
        except NightError as error:
            self.night.note(f"the judge: {error}")
        return self.server.socket


def learned_reward(
    night: Night, day: Artifact, reward_model: Artifact, champion: Path, base: Path, exam: Sequence[Problem]
) -> LearnedReward | None:
    """Return the learned reward's part in the rounds; None where nothing serves or it is not used.

    `day`: the frozen journal. `base`: the checkpoint before the first round.
    """
    config = night.config
    if not (config.learned_reward.owner_share or config.learned_reward.tie_breaker):
        return None
    if config.judge is not None:
        judge = Judge(night, config.judge, champion)
        proof: dict[str, Any] = {"reward_model": reward_model, "picks": config.judge.picks}
        examined = night.run(examine_judge, "examine_judge", **proof, **judge.arguments())
        if examined.read_json("outcome.json")["serves"]:
            return LearnedReward(night, day, reward_model, base, exam, judge.arguments)
        log.warning("the judge %s does not serve: it did not prove itself on the held-out picks", judge.endpoint.model)
    if not reward_model.read_json("outcome.json")["serves"]:
        return None
    return LearnedReward(night, day, reward_model, base, exam)


def find_judge(checkpoint: str) -> Path:
    """Return the folder of `judge.checkpoint`. Raises InputError where no model can be loaded from it."""
    folder = find_model(checkpoint, None, "judge.checkpoint").resolve()
    check_loads(folder, "judge.checkpoint")
    return folder


def settings(config: NightConfig, checkpoint: Path, *, trusted: bool) -> NightConfig:
    """Return the settings with which a judge in a folder is served: its own memory, and no system text.

    Only a `trusted` model may bring code, where the student may.
    """
    memory = {"max_model_len": CONTEXT_TOKENS, "max_num_seqs": CONCURRENT_REQUESTS, "kv_cache_gb": 1.0}
    engine = config.sampler.model_copy(update=memory | {"gpu_memory_share": GPU_MEMORY_SHARE})
    code = config.student.trust_remote_code and trusted
    student = config.student.model_copy(update={"system": None, "trust_remote_code": code})
    return config.model_copy(update={"engine": engine_for(engine, checkpoint), "student": student})


def log_judge(tracking: Tracking, night: Path) -> None:
    """Log how the judge did on the held-out picks, where there is one."""
    if examined := committed(night / "examine_judge"):
        tracking.log(figures(examined.read_json("outcome.json")), 0)
