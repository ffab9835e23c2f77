"""Whatever its owner can mend stops a night before it writes anything, in one line."""

import json
import shutil
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace

import pytest
from prefect.settings import PREFECT_API_URL, PREFECT_CLIENT_MAX_RETRIES, temporary_settings

from conf.load import load_night
from conf.schema import NightConfig
from conf.storage.home import Home, InputError
from flows.run.preflight import check_exam, check_fresh, check_night, finished_summary
from rewards.jail import policy
from tests.tasks.doubles.journals import decided
from tests.tasks.doubles.registry import School
from tests.tasks.doubles.student import write_student

CONF = Path(__file__).parents[3] / "conf"


@pytest.fixture(autouse=True)
def quiet_machine(monkeypatch: pytest.MonkeyPatch) -> None:
    """Enough disk, whatever this machine has, and no settings of its owner."""
    monkeypatch.setattr(shutil, "disk_usage", lambda _: SimpleNamespace(free=500_000_000_000))
    for name in ("PREFECT_API_URL", "NIGHTSCHOOL_DATA"):
        monkeypatch.delenv(name, raising=False)


def starter(*overrides: str) -> NightConfig:
    return load_night(CONF / "starter.yaml", overrides)


def gsm8k(folder: Path, *, splits: tuple[str, ...] = ("train", "test"), rows: int = 400) -> Path:
    """A folder as NIGHTSCHOOL_DATA names one."""
    (folder / "gsm8k").mkdir(parents=True)
    line = json.dumps({"question": "How many?", "answer": "#### 4"})
    for split in splits:
        (folder / "gsm8k" / f"{split}.jsonl").write_text(f"{line}\n" * rows)
    return folder


def refused(tmp_path: Path, config: NightConfig) -> str:
    home = Home(tmp_path / "school")
    before = sorted(tmp_path.rglob("*"))
    with pytest.raises(InputError) as caught:
        check_night(home, config)
    assert sorted(tmp_path.rglob("*")) == before
    assert "\n" not in str(caught.value)
    return str(caught.value)


def test_a_good_night_is_let_through_and_nothing_is_written(tmp_path: Path) -> None:
    check_night(Home(tmp_path / "school"), starter())
    assert list(tmp_path.iterdir()) == []


def test_a_night_on_gsm8k(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("NIGHTSCHOOL_DATA", str(gsm8k(tmp_path / "data")))
    config = load_night(CONF / "nightly.yaml", ["student.source=starter", "lora=null"])
    check_night(Home(tmp_path / "school"), config)


@pytest.mark.parametrize("missing", ["train", "test"])
def test_a_data_folder_that_lacks_a_file(tmp_path: Path, missing: str, monkeypatch: pytest.MonkeyPatch) -> None:
    there = "test" if missing == "train" else "train"
    monkeypatch.setenv("NIGHTSCHOOL_DATA", str(gsm8k(tmp_path / "data", splits=(there,))))
    config = load_night(CONF / "nightly.yaml", ["student.source=starter", "lora=null"])
    assert refused(tmp_path, config).startswith(f"{tmp_path}/data/gsm8k/{missing}.jsonl: no such file; put it there")


def test_a_line_that_is_cut_off(tmp_path: Path) -> None:
    data = gsm8k(tmp_path / "data", rows=3)
    with (data / "gsm8k" / "train.jsonl").open("a") as stream:
        stream.write('{"question": "How ma')
    line = refused(tmp_path, starter(f"benchmarks=[{{name: gsm8k, source: {data}}}]"))
    assert line.startswith(f"{data}/gsm8k/train.jsonl, line 4: not valid JSON")


def test_a_student_without_a_tokenizer(tmp_path: Path) -> None:
    student = write_student(tmp_path / "mine", tokenizer=False)
    line = refused(tmp_path, starter(f"student.source={student}"))
    assert line.startswith(f"student.source: {student}: no tokenizer.json (a tokenizer) in this folder; name a folder")


def test_a_student_that_is_not_there(tmp_path: Path) -> None:
    assert refused(tmp_path, starter(f"student.source={tmp_path}/mine")).startswith(
        f"student.source: {tmp_path}/mine: there is no such folder"
    )


def test_a_teacher_that_is_not_there(tmp_path: Path) -> None:
    line = refused(tmp_path, starter(f"on_policy.teacher={tmp_path}/larger"))
    assert line == f"on_policy.teacher: {tmp_path}/larger: there is no such folder; name one, or a hub id (owner/name)"


def test_the_starter_is_a_teacher_that_is_always_there(tmp_path: Path) -> None:
    check_night(Home(tmp_path / "school"), starter("on_policy.teacher=starter", "stages=[{on_policy: 1}]"))


def test_levels_that_do_not_exist(tmp_path: Path) -> None:
    assert refused(tmp_path, starter('benchmarks.0.levels=["6"]')) == "arithmetic: no level 6; there are 1, 2, 3, 4, 5"
    assert refused(tmp_path, starter('exam.target.levels=["0"]')).startswith("arithmetic: no level 0")


def programs(folder: Path) -> Path:
    """A folder of data with MBPP and HumanEval: enough problems of each for a guard, all alike."""
    (folder / "mbpp").mkdir(parents=True)
    (folder / "humaneval").mkdir()
    row = {
        "text": "Double it.",
        "code": "def twice(x):\n    return 2 * x",
        "test_setup_code": "",
        "challenge_test_list": [],
    }
    row |= {"test_list": ["assert twice(2) == 4"]}
    tasks = [json.dumps(row | {"task_id": number}) for number in (*range(11, 60), *range(601, 650))]
    (folder / "mbpp" / "mbpp.jsonl").write_text("\n".join(tasks))
    prompt = 'def twice(x):\n    """Double it."""\n'
    asked = {"prompt": prompt, "entry_point": "twice", "canonical_solution": "    return 2 * x\n"}
    asked |= {"test": "def check(candidate):\n    assert candidate(2) == 4\n"}
    tasks = [json.dumps(asked | {"task_id": f"HumanEval/{number}"}) for number in range(50)]
    (folder / "humaneval" / "HumanEval.jsonl").write_text("\n".join(tasks))
    return folder


TRAINED = "benchmarks=[{name: mbpp}]"
EXAMINED = "exam.guards=[{benchmark: humaneval, problems: 40}]"


@pytest.mark.parametrize(("override", "named"), [(TRAINED, "mbpp"), (EXAMINED, "humaneval")])
def test_programs_are_not_judged_without_a_sandbox(
    tmp_path: Path, override: str, named: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("NIGHTSCHOOL_DATA", str(programs(tmp_path / "data")))
    monkeypatch.setenv("PATH", str(tmp_path))
    line = refused(tmp_path, starter(override))
    assert line.startswith(f"sandbox: {named} cannot be judged on this machine: ")
    assert "bubblewrap" in line
    assert "install" in line
    check_night(Home(tmp_path / "school"), starter())  # a night without programs needs none


@pytest.mark.skipif(not shutil.which("bwrap"), reason="bubblewrap is not installed")
def test_programs_with_a_sandbox(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("NIGHTSCHOOL_DATA", str(programs(tmp_path / "data")))
    config = starter(TRAINED, EXAMINED, "sandbox.workers=1")
    check_night(Home(tmp_path / "school"), config)
    check_exam(config)
    assert [path.name for path in tmp_path.iterdir()] == ["data"]


def test_an_exam_of_programs_outside_of_a_night_needs_the_sandbox_too(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("NIGHTSCHOOL_DATA", str(programs(tmp_path / "data")))
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(InputError, match="sandbox: humaneval cannot be judged on this machine: "):
        check_exam(starter(EXAMINED))
    check_exam(starter(TRAINED))  # what is trained on is no part of it


@pytest.mark.parametrize("layer", ["seccomp", "landlock"])
def test_a_kernel_that_lacks_a_layer(tmp_path: Path, layer: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """By default the night refuses; the configuration may allow it to go without."""

    def lacking(*_: object) -> int:
        raise policy.SandboxUnavailable(f"{layer}: this kernel has none; install another")

    monkeypatch.setenv("NIGHTSCHOOL_DATA", str(programs(tmp_path / "data")))
    monkeypatch.setattr(policy, "seccomp_program" if layer == "seccomp" else "landlock_ruleset", lacking)
    line = refused(tmp_path, starter(TRAINED))
    assert line == f"sandbox: mbpp cannot be judged on this machine: {layer}: this kernel has none; install another"
    if shutil.which("bwrap"):
        check_night(
            Home(tmp_path / "school"), starter(TRAINED, f"sandbox.allow_missing=[{layer}]", "sandbox.workers=1")
        )
    other = "landlock" if layer == "seccomp" else "seccomp"
    assert refused(tmp_path, starter(TRAINED, f"sandbox.allow_missing=[{other}]")) == line


def test_a_guard_whose_benchmark_is_too_small(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Whatever number the configuration names: there are only so many."""
    monkeypatch.setenv("NIGHTSCHOOL_DATA", str(gsm8k(tmp_path / "data", rows=20)))
    line = refused(tmp_path, starter("exam.guards=[{benchmark: gsm8k, problems: 400}]"))
    assert line.startswith("exam.guards: gsm8k: 20 problems can never show a loss below its margin of 0.05; at")


def test_a_benchmark_whose_every_truth_is_unreadable(tmp_path: Path) -> None:
    (tmp_path / "train.jsonl").write_text('{"question": "How many?", "answer": "four"}\n')
    line = refused(tmp_path, starter(f"benchmarks=[{{name: gsm8k, source: {tmp_path}}}]"))
    assert line == "benchmarks: gsm8k has no problems to train on; name other levels"


def test_a_guard_that_can_never_pass(tmp_path: Path) -> None:
    line = refused(tmp_path, starter("exam.guards.0.problems=10"))
    assert line.startswith("exam.guards: arithmetic-3: 10 problems can never show a loss below its margin of 0.05; at")


def test_a_target_that_can_never_be_won(tmp_path: Path) -> None:
    line = refused(tmp_path, starter("exam.target.problems=5"))
    assert line.startswith("exam.target: arithmetic-1-2: 5 problems can never show that a candidate is better at")


def test_a_target_without_training_problems_has_no_quizzes(tmp_path: Path) -> None:
    exam = gsm8k(tmp_path / "data", splits=("test",)) / "gsm8k"
    target = f"exam.target={{benchmark: gsm8k, source: {exam}}}"
    line = refused(tmp_path, starter(target))
    assert line.startswith("grpo.quiz_every_rounds: ")
    assert line.endswith("0 leaves the quizzes out")
    check_night(Home(tmp_path / "school"), starter(target, "grpo.quiz_every_rounds=0"))


def test_the_summary_of_a_finished_night(tmp_path: Path) -> None:
    home = Home(tmp_path / "school")
    assert finished_summary(home, "2026-11-20") is None
    home.night("2026-11-20").mkdir(parents=True)
    assert finished_summary(home, "2026-11-20") is None
    (home.night("2026-11-20") / "summary.json").write_text('{"night": "2026-11-20"}')
    assert finished_summary(home, "2026-11-20") == {"night": "2026-11-20"}
    assert finished_summary(home, "2026-11-21") is None


def test_a_password_in_a_url(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    url, told = "https://me:s3cret@elsewhere/api", "https://me:***@elsewhere/api: user and password of a URL"
    with temporary_settings({PREFECT_API_URL: url}):
        assert refused(tmp_path, starter()).startswith(f"PREFECT_API_URL: {told}")
    monkeypatch.setenv("MLFLOW_TRACKING_URI", url)
    assert refused(tmp_path, starter()).startswith(f"MLFLOW_TRACKING_URI: {told}")


def test_a_prefect_server_that_is_not_there(tmp_path: Path) -> None:
    with temporary_settings({PREFECT_API_URL: (url := "http://127.0.0.1:9/api"), PREFECT_CLIENT_MAX_RETRIES: 0}):
        assert refused(tmp_path, starter()).startswith(f"PREFECT_API_URL: {url} does not answer (")


def test_a_webhook_whose_variable_is_not_set(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    night = starter("morning.webhook_variable=MY_CHAT")
    monkeypatch.delenv("MY_CHAT", raising=False)
    said = (
        "morning.webhook_variable: MY_CHAT is not set; set it to the webhook's URL, or morning.webhook_variable to null"
    )
    assert refused(tmp_path, night) == said
    monkeypatch.setenv("MY_CHAT", "https://chat.example/key")
    check_night(Home(tmp_path / "school"), night)


def test_a_command_for_alarms_that_cannot_be_run(tmp_path: Path) -> None:
    said = refused(tmp_path, starter("alarms.command=[/no/such/program, key-1234]"))
    assert said == "alarms.command: /no/such/program is no program that can be run here; give its whole path"
    check_night(Home(tmp_path / "school"), starter("alarms.command=[sh]"))


def test_a_night_that_made_what_serves_is_not_begun_anew(home_with_mlflow: Callable[[str], Home]) -> None:
    """Nor one that this was made from, whatever it is to be now. After a rollback to one from before it, it may be."""
    home, config = home_with_mlflow("school"), starter("name=another")
    school = School(home)
    first, second, third = (checkpoint.name for checkpoint in school.checkpoints)
    decided(home.root, "2026-11-20", first, second, "", "name=student")
    decided(home.root, "2026-11-21", second, third, "", "name=student")
    for number in range(3):
        school.registry.promote(school.register(number).version)
    for night in ("2026-11-20", "2026-11-21"):
        with pytest.raises(InputError, match=f"the night {night} made the model that serves, or one that this was"):
            check_fresh(home, config, night)
    check_fresh(home, config, "2026-11-22")
    school.registry.rollback()
    check_fresh(home, config, "2026-11-21")
    with pytest.raises(InputError, match="nightschool rollback"):
        check_fresh(home, config, "2026-11-20")


def test_a_night_of_a_home_without_a_registry_may_be_begun_anew(tmp_path: Path) -> None:
    check_fresh(Home(tmp_path), starter(), "2026-11-20")
