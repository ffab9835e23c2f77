"""Whatever its owner can correct stops a night before it writes anything, in one line."""

import shutil
from pathlib import Path
from types import SimpleNamespace
from unittest.mock import Mock

import pytest
from prefect.settings import PREFECT_API_URL, PREFECT_CLIENT_MAX_RETRIES, temporary_settings

from conf.load import STARTER, load_night
from conf.schema import NightConfig
from conf.storage.home import Home, InputError
from flows.run.preflight import check_exam, check_night
from rewards.data import benchmarks
from rewards.programs import policy
from tasks.monitoring.notify import VARIABLE
from tests.refusal import refusal
from tests.rewards.datasets import HUMANEVAL, MBPP, write_gsm8k, write_rows

NIGHTLY = STARTER.parent / "nightly.yaml"
TRAINED = "benchmarks=[{name: mbpp}]"
EXAMINED = "exam.guards=[{benchmark: humaneval, problems: 40, margin: 0.1}]"


@pytest.fixture(autouse=True)
def quiet_machine(monkeypatch: pytest.MonkeyPatch) -> None:
    """Enough disk, and no settings of this machine's owner."""
    monkeypatch.setattr(shutil, "disk_usage", lambda _: SimpleNamespace(free=500_000_000_000))
    for name in ("PREFECT_API_URL", "NIGHTSCHOOL_DATA", VARIABLE):
        monkeypatch.delenv(name, raising=False)


def starter(*overrides: str) -> NightConfig:
    return load_night(STARTER, ["budget_minutes=null", *overrides])  # hours would have the machine's speed measured


def refused(tmp_path: Path, *overrides: str) -> str:
    before = sorted(tmp_path.rglob("*"))
    line = refusal(check_night, Home(tmp_path / "school"), starter(*overrides))
    assert sorted(tmp_path.rglob("*")) == before
    return line


@pytest.mark.parametrize("overrides", [[], ["on_policy.teacher=starter"]])
def test_a_good_night_is_let_through_and_nothing_is_written(
    tmp_path: Path, overrides: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(VARIABLE, "https://chat.example/key")
    check_night(Home(tmp_path / "school"), starter(*overrides))
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    ("override", "message"),
    [
        ("student.source={tmp}/mine", "student.source: {tmp}/mine: there is no such folder"),
        ("on_policy.teacher={tmp}/larger", "on_policy.teacher: {tmp}/larger: there is no such folder; name one, or a"),
        ("distill.files=[{{source: {tmp}/traces.jsonl}}]", "distill.files: {tmp}/traces.jsonl: no such file; give its"),
        ("benchmarks=[{{name: nowhere:Nothing}}]", "nowhere:Nothing cannot be imported (ModuleNotFoundError"),
        ("exam.guards.0.problems=3", "exam.guards: instructions: 3 problems are too few to show that a loss is within"),
        ("exam.target.problems=900", "exam: arithmetic-1-2 has 868 problems, not 900; leave out `problems` for all"),
        ("exam.target.problems=5", "exam.target: arithmetic-1-2: 5 problems are too few to show a gain"),
    ],
)
def test_a_wrong_setting(tmp_path: Path, override: str, message: str) -> None:
    assert refused(tmp_path, override.format(tmp=tmp_path)).startswith(message.format(tmp=tmp_path))


@pytest.mark.parametrize(
    ("override", "reason"),
    [
        ("grpo.overlong=shape", "are for single answers; leave them out with an environment"),  # the limit is a turn's
        ("reward.length_penalty=0.1", "are for single answers; leave them out with an environment"),
        ("on_policy.teacher=starter", "are for single answers; leave them out with an environment"),
        ("stages=[self_distill, {grpo: 1}]", "are for single answers; leave them out with an environment"),
        ("reward.format=0.1", "has no effect with grpo.credit: td"),
        ("grpo={scale: std, credit: td}", "grpo.scale: std is for whole episodes"),
        ("benchmarks=[{name: ants}, {name: ants, levels: [1]}]", "listed twice; give one entry all the levels"),
    ],
)
def test_what_an_environment_has_no_use_for(tmp_path: Path, override: str, reason: str) -> None:
    config = load_night(STARTER.with_name("ants.yaml"), ["budget_minutes=null", override])
    with pytest.raises(InputError, match=reason):
        check_night(Home(tmp_path), config)


def test_a_teacher_weighs_no_whole_solutions(tmp_path: Path) -> None:
    assert "leave out the 1" in refused(tmp_path, "on_policy.teacher=starter", "grpo.hints=[0.5, 1]")


def test_guards_that_fail_by_bad_luck_are_warned_about(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    """.20 with 100 problems, .65 with 25. Two such guards of 100 reject 1 − .8²."""
    guard = "{{benchmark: arithmetic, levels: ['{}'], problems: {}, margin: 0.1}}"
    for guards, warned in (([1, 100],), None), (([1, 25],), "65 %"), (([1, 100], [2, 100]), "36 %"):
        caplog.clear()
        check_night(Home(tmp_path), starter(f"exam.guards=[{', '.join(guard.format(*each) for each in guards)}]"))
        assert ("equally good" in caplog.text) is (warned is not None)
        assert f"equally good candidate {warned or ''}" in caplog.text or warned is None


def test_a_small_exam_says_which_gain_it_could_have_seen(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    check_night(Home(tmp_path), starter("exam.target.problems=50"))
    assert "exam.target: 50 problems detect a true gain of 0.15 four times in five if no answer becomes" in caplog.text
    caplog.clear()
    check_night(Home(tmp_path), starter())
    assert "four times in five" not in caplog.text


def test_a_night_on_gsm8k(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Its data is there; a file is missing."""
    data = write_gsm8k(tmp_path / "data" / "gsm8k", 400)
    monkeypatch.setenv("NIGHTSCHOOL_DATA", str(data.parent))
    only = ["benchmarks=[{name: gsm8k}]", "exam.guards=[]"]
    config = load_night(NIGHTLY, ["student.source=starter", "lora=null", *only])
    check_night(Home(tmp_path / "school"), config)
    benchmarks._built_in.cache_clear()  # as in the process of another night
    for split in ("train", "test"):
        file = data / f"{split}.jsonl"
        aside = file.rename(tmp_path / "aside")
        with pytest.raises(InputError, match=f"{file}: no such file; put it there"):
            check_night(Home(tmp_path / "school"), config)
        aside.rename(file)


def test_a_benchmark_whose_truths_cannot_be_read_has_no_problems(tmp_path: Path) -> None:
    for split in ("train", "test"):
        (tmp_path / f"{split}.jsonl").write_text('{"question": "How many?", "answer": "four"}\n')
    none = refused(tmp_path, f"benchmarks=[{{name: gsm8k, source: {tmp_path}}}]")
    assert none == "benchmarks: gsm8k has no problems to train on; name other levels"
    none = refused(tmp_path, f"exam.target={{benchmark: gsm8k, source: {tmp_path}}}")
    assert none == "exam: gsm8k has no problems; name other levels"


def test_a_target_without_training_problems_has_no_quizzes(tmp_path: Path) -> None:
    exam = write_gsm8k(tmp_path / "gsm8k", 400, "test")
    target = f"exam.target={{benchmark: gsm8k, source: {exam}}}"
    line = refused(tmp_path, target)
    assert line.startswith("grpo.quiz_every_rounds: ")
    assert line.endswith("0 switches the quizzes off")
    check_night(Home(tmp_path / "school"), starter(target, "grpo.quiz_every_rounds=0"))


def programs(folder: Path) -> Path:
    """A folder of data with MBPP and HumanEval: enough problems of each for a guard, all alike."""
    (folder / "mbpp").mkdir(parents=True)
    (folder / "humaneval").mkdir()
    numbers = (*range(11, 60), *range(601, 650))
    write_rows(folder / "mbpp" / "mbpp.jsonl", *(MBPP | {"task_id": number} for number in numbers))
    tasks = (HUMANEVAL | {"task_id": f"HumanEval/{number}"} for number in range(50))
    write_rows(folder / "humaneval" / "HumanEval.jsonl", *tasks)
    return folder


def test_programs_are_not_judged_without_a_sandbox(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("NIGHTSCHOOL_DATA", str(programs(tmp_path / "data")))
    monkeypatch.setenv("PATH", str(tmp_path))
    for override, name in ((TRAINED, "mbpp"), (EXAMINED, "humaneval")):
        line = refused(tmp_path, override)
        assert line.startswith(f"sandbox: {name} cannot be judged on this machine: ")
        assert "bubblewrap" in line
        assert "install" in line
    check_night(Home(tmp_path / "school"), starter())  # a night without programs needs none
    with pytest.raises(InputError, match="sandbox: humaneval cannot be judged on this machine: "):
        check_exam(starter(EXAMINED))
    check_exam(starter(TRAINED))  # outside of a night nothing is trained


@pytest.mark.parametrize(("layer", "other"), [("seccomp", "landlock"), ("landlock", "seccomp")])
def test_a_kernel_that_lacks_a_layer(tmp_path: Path, layer: str, other: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """By default the night is refused; the configuration may allow it to go without."""
    lacking = Mock(side_effect=policy.SandboxUnavailable(f"{layer}: this kernel has none; install another"))
    monkeypatch.setenv("NIGHTSCHOOL_DATA", str(programs(tmp_path / "data")))
    monkeypatch.setattr(policy, "seccomp_program" if layer == "seccomp" else "landlock_ruleset", lacking)
    line = refused(tmp_path, TRAINED)
    assert line == f"sandbox: mbpp cannot be judged on this machine: {layer}: this kernel has none; install another"
    assert refused(tmp_path, TRAINED, f"sandbox.allow_missing=[{other}]") == line
    if shutil.which("bwrap"):
        allowed = starter(TRAINED, EXAMINED, f"sandbox.allow_missing=[{layer}]")
        check_night(Home(tmp_path / "school"), allowed)
        check_exam(allowed)
        assert [path.name for path in tmp_path.iterdir()] == ["data"]


def test_urls(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """None with a password in it, a server must answer, and a webhook has one."""
    url, message = "https://me:s3cret@elsewhere/api", "https://me:***@elsewhere/api: user and password of a URL"
    with temporary_settings({PREFECT_API_URL: url}):
        assert refused(tmp_path).startswith(f"PREFECT_API_URL: {message}")
    with temporary_settings({PREFECT_API_URL: (away := "http://127.0.0.1:9/api"), PREFECT_CLIENT_MAX_RETRIES: 0}):
        assert refused(tmp_path).startswith(f"PREFECT_API_URL: {away} does not answer (")
    monkeypatch.setenv("MLFLOW_TRACKING_URI", url)
    assert refused(tmp_path).startswith(f"MLFLOW_TRACKING_URI: {message}")
    monkeypatch.delenv("MLFLOW_TRACKING_URI")
    monkeypatch.setenv(VARIABLE, "MY_CHAT")
    assert refused(tmp_path).startswith("NIGHTSCHOOL_WEBHOOK holds no http:// or https:// URL")
