"""A configuration is read whole or refused in one line."""

import json
import re
from pathlib import Path
from typing import Any, get_args

import pytest
import yaml
from hypothesis import given, settings
from hypothesis import strategies as st

from benchmarks.starter import STUDIED
from conf.load import differences, frozen_yaml, identity, load_night
from conf.schema import NightConfig
from conf.sections.benchmark import BenchmarkName
from conf.storage.home import InputError

ROOT = Path(__file__).parents[2]
STARTER = ROOT / "conf" / "starter.yaml"
NIGHTLY = ROOT / "conf" / "nightly.yaml"
MIXED = ROOT / "conf" / "mixed.yaml"
FULL_DAY = ROOT / "conf" / "full_day.yaml"
SMALL = """\
name: small
benchmarks:
  - {name: arithmetic, levels: ["1"]}
grpo:
  rounds: 2
exam:
  target: {benchmark: arithmetic, levels: ["1"]}
"""
NAMES = (
    "'arithmetic', 'gsm8k', 'math', 'mbpp', 'humaneval' or 'triviaqa' or module:Class, one of your own "
    "(docs/how-to/your-own-benchmark.md)"
)


@pytest.fixture
def in_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "my.yaml").write_text(SMALL)
    return Path("my.yaml")


def refusal(path: Path, *overrides: str) -> str:
    with pytest.raises(InputError) as caught:
        load_night(path, overrides)
    assert caught.value.__cause__ is None
    assert caught.value.__suppress_context__ or caught.value.__context__ is None
    assert "\n" not in str(caught.value)
    return str(caught.value)


def changed(*overrides: str, path: Path = STARTER) -> NightConfig:
    return load_night(path, overrides)


def test_the_shipped_nights_load() -> None:
    starter, nightly = load_night(STARTER), load_night(NIGHTLY)
    assert (starter.name, starter.grpo.group_size, starter.lora) == ("starter", 16, None)
    assert nightly.student.template_arguments == {"enable_thinking": False}
    assert nightly.optimizer.learning_rate == 1e-4
    assert nightly.lora is not None
    assert (nightly.lora.rank, nightly.lora.alpha) == (16, 32)
    assert [part.name for part in nightly.exam.parts] == ["gsm8k", "arithmetic-1-2"]


def test_the_mixed_night_loads() -> None:
    mixed = load_night(MIXED)
    assert [(entry.name, entry.weight) for entry in mixed.benchmarks] == [("gsm8k", 2.0), ("math", 2.0), ("mbpp", 1.0)]
    assert [part.name for part in mixed.exam.parts] == ["gsm8k", "math-500", "mbpp"]
    assert mixed.sandbox.allow_missing == ()
    assert (mixed.reward.correct, mixed.reward.format, mixed.reward.length_penalty) == (1.0, 0.0, 0.0)


def test_the_full_day_has_all_that_a_night_can_learn_from() -> None:
    full = load_night(FULL_DAY)
    kinds = [step.kind for step in full.steps]
    assert kinds == ["lessons", "grpo", "distill", "self_distill", "on_policy", "grpo"]
    assert all(full.day.model_dump().values())
    assert full.distill.teacher is not None
    assert full.on_policy is not None
    assert (full.on_policy.teacher, full.student.source) == (str(STUDIED), "starter")
    assert full.preference_learning == "both"
    assert full.learned_reward.owner_share * full.learned_reward.tie_breaker > 0
    assert full.day.generated_preferences > full.reward_model.min_picks
    channels = (full.lessons.corrections, full.lessons.words, full.lessons.feedback)
    assert all(channel.enabled for channel in channels)


def test_the_real_night_on_a_cpu_as_its_file_says() -> None:
    config = changed("student.source=starter", "lora=null", path=NIGHTLY)
    assert (config.student.source, config.lora) == ("starter", None)


@pytest.mark.parametrize(
    ("was", "becomes", "said"),
    [
        ("rounds: 2", "roundz: 2", "grpo.roundz: unknown key; did you mean 'rounds'?"),
        ("grpo:", "grpoo:", "grpoo: unknown key; did you mean 'grpo'?"),
        ("rounds: 2", "group_size: 80", "grpo.group_size: 80 is not allowed; at most 64"),
        ("rounds: 2", "group_size: 1", "grpo.group_size: 1 is not allowed; at least 2"),
        ("rounds: 2", "clip_low: 1", "grpo.clip_low: 1 is not allowed; less than 1.0"),
        ("rounds: 2", "rounds: many", 'grpo.rounds: "many" is not allowed; a whole number'),
        ("rounds: 2", "rounds: 2.0", "grpo.rounds: 2.0 is not allowed; a whole number"),
        ("rounds: 2", 'rounds: "2"', 'grpo.rounds: "2" is not allowed; a whole number'),
        ("rounds: 2", "rounds: yes", "grpo.rounds: true is not allowed; a whole number"),
        ("rounds: 2", "rounds:", "grpo.rounds: null is not allowed; a whole number"),
        ("rounds: 2", "clip_low: low", 'grpo.clip_low: "low" is not allowed; a number'),
        ("rounds: 2", "overlong: keep", "grpo.overlong: \"keep\" is not allowed; 'train', 'mask' or 'shape'"),
        (
            "rounds: 2",
            "sampler_ratio_band: [2, 0.5]",
            "grpo.sampler_ratio_band.0: 2 is not allowed; at most 1.0 (and 1 more)",
        ),
        ("rounds: 2", "sampler_ratio_band: [1]", "grpo.sampler_ratio_band.1: is missing; it has no default"),
        (
            "rounds: 2",
            "sampler_ratio_band: [1, 2, 3]",
            "grpo.sampler_ratio_band: [1, 2, 3] is not allowed; at most 2 of them",
        ),
        ("grpo:\n  rounds: 2", "grpo: 2", "grpo: 2 is not allowed; a mapping of keys"),
        ("grpo:", "lora: {targets: 5}\ngrpo:", "lora.targets: 5 is not allowed; a list or 'all-linear'"),
        ("grpo:", "alarms: {command: mail me}\ngrpo:", 'alarms.command: "mail me" is not allowed; a list'),
        (
            "grpo:",
            "morning: {webhook_variable: https://me}\ngrpo:",
            'morning.webhook_variable: "https://me" is not allowed; must match ^[A-Za-z_][A-Za-z0-9_]*$',
        ),
        ("grpo:", "alarms: {command: []}\ngrpo:", "alarms.command: [] is not allowed; at least 1 of them"),
        ("name: small", "name: My night", 'name: "My night" is not allowed; must match ^[a-z0-9-]+$'),
        (
            '["1"]}\ngrpo',
            "[1]}\ngrpo",
            "benchmarks.0.levels.0: 1 is not allowed; a text, in quotes where it looks like something else",
        ),
        ("name: arithmetic", "name: algebra", f'benchmarks.0.name: "algebra" is not allowed; {NAMES}'),
        ("benchmark: arithmetic, ", "", "exam.target.benchmark: is missing; it has no default"),
        ("exam:", "exan:", "exan: unknown key; did you mean 'exam'? (and 1 more)"),
        ("rounds: 2", "rounds: -1\n  group_size: 80", "grpo.rounds: -1 is not allowed; at least 0 (and 1 more)"),
        (
            "exam:",
            "exam:\n  guards: [{benchmark: gsm8k}, {benchmark: gsm8k}]",
            "exam: two parts of the exam are named alike: arithmetic-1, gsm8k, gsm8k",
        ),
        ("rounds: 2", "7: 2", "grpo.7: unknown key; known are aggregation, clip_high, clip_low, exploration"),
        ("rounds: 2", "rounds: 2\n  rounds: 3", "line 6, column 3: not valid YAML: the key 'rounds' stands twice"),
        ("rounds: 2", "clip_high: .inf", "line 5, column 14: not valid YAML: .inf is no finite number"),
        ("rounds: 2", "rounds: [2", "line 6, column 5: not valid YAML: expected ',' or ']', but got ':'"),
        ("rounds: 2", "rounds: 2026-02-30", "not valid YAML: day is out of range for month"),
    ],
)
def test_a_fault_in_the_file_is_one_line(in_folder: Path, was: str, becomes: str, said: str) -> None:
    assert was in SMALL
    in_folder.write_text(SMALL.replace(was, becomes, 1))
    line = refusal(in_folder)
    assert line.startswith(f"my.yaml: {said}") if "known are" in said else line == f"my.yaml: {said}"


@pytest.mark.parametrize(
    ("override", "said"),
    [
        (
            "benchmarks=[{name: humaneval}]",
            "benchmarks.0.name: humaneval cannot be trained on: it has exam problems only; train on mbpp instead",
        ),
        (
            'benchmarks=[{name: math, subset: "500"}]',
            "benchmarks.0.subset: MATH-500 cannot be trained on: it is a part of the exam's problems; remove `subset`",
        ),
        (
            "benchmarks=[{name: mbpp, subset: tidy}]",
            'benchmarks.0.subset: "tidy" is not allowed; the only subset of mbpp is "sanitized"',
        ),
        (
            "benchmarks=[{name: gsm8k, subset: sanitized}]",
            'benchmarks.0.subset: "sanitized" is not allowed; gsm8k has no subsets',
        ),
        (
            "benchmarks=[{name: mbpp, lenient: true}]",
            "benchmarks.0.lenient: mbpp knows no lenient reading, only gsm8k does; remove `lenient`",
        ),
        (
            "benchmarks=[{name: gsm8k, lenient: sometimes}]",
            'benchmarks.0.lenient: "sometimes" is not allowed; true or false',
        ),
        (
            "benchmarks=[{name: arithmetic, revision: main}]",
            "benchmarks.0.revision: arithmetic is generated, not loaded from the hub; remove `revision`",
        ),
        (
            "benchmarks=[{name: gsm8k, source: here, revision: main}]",
            "benchmarks.0.revision: a revision is one of the hub's, and `source` names a folder; remove one of the two",
        ),
        ("benchmarks=[{name: gsm8k, weight: 0}]", "benchmarks.0.weight: 0 is not allowed; more than 0.0"),
        ("benchmarks=[{name: gsm8k, weight: -1}]", "benchmarks.0.weight: -1 is not allowed; more than 0.0"),
        (
            "benchmarks=[{name: gsm8k, weight: 2}, {name: gsm8k, lenient: true}]",
            "two benchmarks mean the same problems of gsm8k; make them one, of both weights",
        ),
        (
            'exam.target={benchmark: gsm8k, subset: "500"}',
            'exam.target.subset: "500" is not allowed; gsm8k has no subsets',
        ),
        (
            'exam.guards=[{benchmark: math, subset: "400"}]',
            'exam.guards.0.subset: "400" is not allowed; the only subset of math is "500"',
        ),
        (
            "exam.guards=[{benchmark: humaneval, lenient: true}]",
            "exam.guards.0.lenient: humaneval knows no lenient reading, only gsm8k does; remove `lenient`",
        ),
        ("seed=-1", "-1 is not allowed; at least 0"),
        ("optimizer.betas=[0.9, 1.0]", "optimizer.betas.1: 1.0 is not allowed; less than 1.0"),
        ("reward.correct=-1", "-1 is not allowed; at least 0.0"),
        ("reward.format=much", '"much" is not allowed; a number'),
        ("reward.lenght_penalty=0.1", "unknown key; did you mean 'length_penalty'?"),
        ("learned_reward.weight=1.1", "1.1 is not allowed; at most 1.0"),
        ("sandbox.workers=0", "0 is not allowed; at least 1"),
        ("sandbox.seconds=0", "0 is not allowed; more than 0.0"),
        ("sandbox.memory_mb=8", "8 is not allowed; at least 64"),
        (
            "sandbox.allow_missing=[bubblewrap]",
            "sandbox.allow_missing.0: \"bubblewrap\" is not allowed; 'landlock' or 'seccomp'",
        ),
        ("sandbox.allow_missing=landlock", '"landlock" is not allowed; a list'),
    ],
)
def test_benchmarks_rewards_and_sandboxes_that_make_no_sense(in_folder: Path, override: str, said: str) -> None:
    assert refusal(in_folder, override) in (f"--set {override}: {said}", f"my.yaml: {said}")


@pytest.mark.parametrize(
    ("override", "said"),
    [
        ("grpo.max_completion_tokens=512", "512 leaves no room for a prompt in engine.max_model_len: 512; lower the"),
        ("exam.max_completion_tokens=999", "999 leaves no room for a prompt in engine.max_model_len: 512; lower the"),
        ("grpo.min_useful_groups=100", "100 are more groups than a round can have (prompts_per_round × (1 + refills)"),
    ],
)
def test_rounds_that_could_never_learn(in_folder: Path, override: str, said: str) -> None:
    assert f"{override.partition('=')[0]}: {said}" in refusal(in_folder, override)


def test_every_benchmark_can_be_examined_and_all_but_one_trained_on(in_folder: Path) -> None:
    for name in get_args(BenchmarkName):
        assert load_night(in_folder, [f"exam.target={{benchmark: {name}}}"]).exam.target.name == name
        if name != "humaneval":
            assert load_night(in_folder, [f"benchmarks=[{{name: {name}}}]"]).benchmarks[0].label == name
    entries = (
        'benchmarks=[{name: math, levels: ["1"]}, {name: math, levels: ["5"]}, {name: gsm8k}, {name: gsm8k, source: x}]'
    )
    assert [entry.label for entry in load_night(in_folder, [entries]).benchmarks] == [
        "math-1",
        "math-5",
        "gsm8k",
        "gsm8k",
    ]
    lenient = load_night(in_folder, ["benchmarks=[{name: gsm8k, lenient: true}]"])
    assert lenient.benchmarks[0].lenient
    assert not load_night(in_folder, ["benchmarks=[{name: gsm8k}]"]).benchmarks[0].lenient


def test_the_parts_of_the_exam_are_told_apart_by_their_subset(in_folder: Path) -> None:
    guards = 'exam.guards=[{benchmark: math}, {benchmark: math, subset: "500"}, {benchmark: mbpp, subset: sanitized}]'
    names = [part.name for part in load_night(in_folder, [guards]).exam.parts]
    assert names == ["arithmetic-1", "math", "math-500", "mbpp-sanitized"]


@pytest.mark.parametrize(
    ("content", "said"),
    [
        (b"", "null is not allowed; must be a mapping, a line `key: value` for each key"),
        (b"- 1\n- 2\n", "[1, 2] is not allowed; must be a mapping, a line `key: value` for each key"),
        (b"name: caf\xe9\n", "byte 9 is not UTF-8; a configuration is a YAML text"),
        (b"name: &a [*a]\n", "line 1, column 7: not valid YAML: found unconstructable recursive node"),
        (b"[" * 5000, "not valid YAML: nested too deep"),
        (b"a: 1\n---\nb: 2\n", "line 2, column 1: not valid YAML: but found another document"),
    ],
)
def test_what_is_no_configuration_at_all(in_folder: Path, content: bytes, said: str) -> None:
    in_folder.write_bytes(content)
    assert refusal(in_folder) == f"my.yaml: {said}"


def test_files_that_cannot_be_read(in_folder: Path) -> None:
    assert refusal(Path("your.yaml")) == "your.yaml: no such file; conf/starter.yaml is one to start from"
    assert refusal(Path(".")) == ".: cannot be read: Is a directory"


def test_overrides_reach_every_place(in_folder: Path) -> None:
    config = load_night(
        in_folder,
        [
            "grpo.rounds=4",
            "benchmarks.0.weight=2",
            "optimizer.learning_rate=1e-4",
            "lora.rank=8",
            "lora.targets=[q_proj]",
            "exam.guards=[{benchmark: gsm8k, problems: 50}]",
            "exam.guards.0.problems=60",
            "student.system=Think = write",
            "student.template_arguments.enable_thinking=false",
            "grpo.rounds=5",
        ],
    )
    assert (config.grpo.rounds, config.benchmarks[0].weight, config.optimizer.learning_rate) == (5, 2.0, 1e-4)
    assert config.lora is not None
    assert (config.lora.rank, config.lora.alpha, config.lora.targets) == (8, 32, ("q_proj",))
    assert (config.exam.guards[0].problems, config.student.system) == (60, "Think = write")
    assert config.student.template_arguments == {"enable_thinking": False}


@pytest.mark.parametrize(
    ("override", "said"),
    [
        ("grpo.rounds", "must look like KEY=VALUE, for example --set grpo.rounds=4"),
        ("=4", "must look like KEY=VALUE, for example --set grpo.rounds=4"),
        ("grpo..rounds=4", "must look like KEY=VALUE, for example --set grpo.rounds=4"),
        ("grpo.roundz=4", "unknown key; did you mean 'rounds'?"),
        ("grpoo.rounds=4", "unknown key; did you mean 'grpo'?"),
        ("benchmarks.0.nam=gsm8k", "unknown key; did you mean 'name'?"),
        ("grpo.rounds=four", '"four" is not allowed; a whole number'),
        ("grpo.rounds=[", "not valid YAML: expected the node content, but found '<stream end>'"),
        ("grpo.group_size=80", "80 is not allowed; at most 64"),
        ("benchmarks=[]", "[] is not allowed; at least 1 of them"),
        ("benchmarks.1.weight=2", "benchmarks.1 is not there; 0 to 0"),
        ("benchmarks.first.weight=2", "benchmarks.first is not there; 0 to 0"),
        ("name.first=x", 'name is "small", which has no keys'),
        ("exam.target={benchmark: x}", f'exam.target.benchmark: "x" is not allowed; {NAMES}'),
        ("optimizer.learning_rate=.nan", "not valid YAML: .nan is no finite number"),
    ],
)
def test_a_fault_in_an_override_names_the_override(in_folder: Path, override: str, said: str) -> None:
    assert refusal(in_folder, override) == f"--set {override}: {said}"


def test_a_fault_of_the_file_is_not_blamed_on_an_override(in_folder: Path) -> None:
    in_folder.write_text(SMALL.replace("rounds: 2", "group_size: 80"))
    assert refusal(in_folder, "grpo.rounds=3") == "my.yaml: grpo.group_size: 80 is not allowed; at most 64"


@pytest.mark.parametrize("path", [STARTER, NIGHTLY, MIXED])
def test_the_frozen_night_reads_back_as_itself(path: Path, tmp_path: Path) -> None:
    config = load_night(path)
    frozen = tmp_path / "config.yaml"
    frozen.write_text(frozen_yaml(config))
    assert load_night(frozen) == config
    assert set(yaml.safe_load(frozen.read_text())) == set(NightConfig.model_fields)


@settings(deadline=None)
@given(system=st.text(st.characters(codec="utf-8")), rate=st.floats(1e-12, 1e3), argument=st.integers() | st.booleans())
def test_no_text_or_number_is_lost_in_the_frozen_night(
    tmp_path_factory: pytest.TempPathFactory, system: str, rate: float, argument: int
) -> None:
    config = load_night(STARTER)
    student = config.student.model_copy(update={"system": system, "template_arguments": {"argument": argument}})
    optimizer = config.optimizer.model_copy(update={"learning_rate": rate})
    config = config.model_copy(update={"student": student, "optimizer": optimizer})
    frozen = tmp_path_factory.mktemp("night") / "config.yaml"
    frozen.write_text(frozen_yaml(config), encoding="utf-8", newline="")
    assert load_night(frozen) == config


def test_a_text_that_looks_like_a_number_stays_a_text(tmp_path: Path) -> None:
    config = changed("student.system='1e-4'", "student.revision='007'")
    frozen = tmp_path / "config.yaml"
    frozen.write_text(frozen_yaml(config))
    assert (load_night(frozen).student.system, load_night(frozen).student.revision) == ("1e-4", "007")


@pytest.mark.parametrize(
    "override",
    [
        *("prefect.port=4300", "tracking.tracking_uri=http://localhost:5000", "tracking.experiment=other"),
        *("alarms.command=[notify-send, Night school]", "morning.webhook_variable=MY_CHAT"),
    ],
)
def test_ports_and_urls_make_no_other_night(override: str) -> None:
    assert identity(changed(override)) == identity(changed())
    assert differences(changed(), changed(override)) == []


TEACHER = "distill.teacher={base_url: 'http://127.0.0.1:8000/v1', model: wise}"


def test_where_a_teacher_listens_makes_no_other_night() -> None:
    here, there = changed(TEACHER), changed(TEACHER, "distill.teacher.base_url=http://10.0.0.7/v1")
    assert here != there
    assert differences(here, there) == []
    assert identity(here) == identity(there) != identity(changed(TEACHER, "distill.teacher.model=other"))
    assert "base_url: http://10.0.0.7/v1" in frozen_yaml(there)


def test_a_limit_in_money_needs_prices() -> None:
    limited = [TEACHER, "distill.teacher.budget_usd=1.5"]
    for prices in ([], ["distill.teacher.usd_per_million_prompt_tokens=0"]):
        with pytest.raises(InputError) as caught:
            changed(*limited, *prices)
        assert "budget_usd: 1.5 is never reached at prices of 0; give usd_per_million_prompt_tokens" in str(
            caught.value
        )
        assert "\n" not in str(caught.value)
    teacher = changed(*limited, "distill.teacher.usd_per_million_answer_tokens=2").distill.teacher
    assert teacher is not None
    assert teacher.budget_usd == 1.5


def leaves(value: Any, key: str = "") -> dict[str, Any]:
    """Every key of a dumped configuration that holds a plain value or a list, with that value."""
    if not isinstance(value, dict) or not value:
        return {key: value}
    return {
        name: leaf
        for inner, below in value.items()
        for name, leaf in leaves(below, f"{key}.{inner}" if key else inner).items()
    }


# A valid value other than the starter's, where `other_value` could not know one.
OTHERS: dict[str, Any] = {
    "benchmarks": [{"name": "gsm8k"}],
    "lora": {"rank": 8},
    "engine.lora": {"rank": 8},
    "student.template_arguments": {"enable_thinking": False},
    "grpo.scale": "std",
    "grpo.aggregation": "sequence",
    "grpo.importance": "sequence",
    "grpo.overlong": "mask",
    "grpo.sampler_ratio_band": [0.25, 4.0],
    "optimizer.betas": [0.9, 0.99],
    "sandbox.workers": 2,
    "sandbox.allow_missing": ["landlock"],
    "exam.guards": [],
    "exam.further_targets": [{"benchmark": "gsm8k"}],
    "exam.vault": 50,
    "exam.alpha_spending": "quadratic",
    "exam.target.benchmark": "gsm8k",
    "distill.files": [{"source": "traces.jsonl"}],
    "distill.teacher": {"base_url": "http://127.0.0.1:8000/v1", "model": "wise"},
    "lessons.picks.method": "best_of_n",
    "preference_learning": "both",
    "stages": ["distill", "grpo"],
    "on_policy": {"teacher": "wise"},
    "reward_model.learning_curve": [0.5],
}
# What can have one value only; arithmetic, the starter's exam, has neither subsets nor revisions nor a lenient reading.
FIXED = {"start_from", "grpo.temperature", "grpo.top_p"}
FIXED |= {f"exam.target.{key}" for key in ("subset", "revision", "lenient")}


def other_value(key: str, value: Any) -> Any:
    if key in OTHERS:
        return OTHERS[key]
    if isinstance(value, bool):
        return not value
    if isinstance(value, list):
        return ["1"]
    if isinstance(value, float):
        return value / 2 or 0.1
    if isinstance(value, int):
        return value - 1 if value > 1 else value + 1
    return "other"


HOURS = {"budget_minutes", "deadline", "deadline_time_zone"}


def test_everything_else_makes_another_night() -> None:
    starter = load_night(STARTER)
    plain = leaves(starter.model_dump(mode="json", exclude={"prefect", "tracking", "alarms", "morning", *HOURS}))
    identities = {identity(starter)}
    for key, value in plain.items():
        if key in FIXED:
            continue
        other = changed(f"{key}={json.dumps(other_value(key, value))}")
        told = differences(starter, other)
        assert told, key
        assert all(line.startswith(key) for line in told), told
        identities.add(identity(other))
    assert len(identities) == 1 + len(plain.keys() - FIXED)
    assert len(plain) > 50


def test_differences_are_lines_a_person_understands() -> None:
    starter = load_night(STARTER)
    assert differences(starter, changed("grpo.rounds=6")) == [f"grpo.rounds: {starter.grpo.rounds} → 6"]
    assert differences(starter, changed("exam.guards.1.margin=0.1")) == ["exam.guards.1.margin: 0.05 → 0.1"]
    assert differences(starter, changed("student.system=Bonjour")) == ['student.system: "" → "Bonjour"']
    assert differences(starter, changed("lora.rank=8")) == [
        'lora: null → {"rank": 8, "alpha": 32, "dropout": 0.0, "targets": "all-li…'
    ]
    assert differences(starter, changed("grpo.rounds=6", "benchmarks.0.levels=['1']")) == [
        'benchmarks.0.levels: ["1", "2"] → ["1"]',
        f"grpo.rounds: {starter.grpo.rounds} → 6",
    ]
    assert differences(starter, changed("student.template_arguments.a=null")) == [
        "student.template_arguments.a: absent → null"
    ]
    assert differences(starter, starter) == []


def test_identity_is_what_was_resolved_and_not_how_it_was_written(tmp_path: Path) -> None:
    frozen = tmp_path / "config.yaml"
    frozen.write_text(frozen_yaml(load_night(STARTER)))
    assert identity(load_night(frozen)) == identity(
        changed(f"grpo.rounds={load_night(STARTER).grpo.rounds}", "lora=null")
    )
    assert re.fullmatch("[0-9a-f]{64}", identity(load_night(STARTER)))


@pytest.mark.parametrize("written", ["06:30", "6:30", '"06:30"', "22:15", "'22:15'", "1:20"])
def test_a_deadline_needs_no_quotes(in_folder: Path, written: str) -> None:
    """YAML 1.1 takes 22:15 for the number 1335."""
    in_folder.write_text(f"{SMALL}deadline: {written}\ndeadline_time_zone: Europe/Berlin\nbudget_minutes: 90\n")
    expected = written.strip("'\"")
    config = load_night(in_folder)
    assert (config.deadline, config.deadline_time_zone, config.budget_minutes) == (expected, "Europe/Berlin", 90.0)
    assert changed(f"deadline={written}").deadline == expected
    (in_folder.parent / "frozen.yaml").write_text(frozen_yaml(config))
    assert load_night(in_folder.parent / "frozen.yaml") == config


def test_hours_do_not_make_it_another_night() -> None:
    other = changed("deadline=06:30", "deadline_time_zone=Europe/Berlin", "budget_minutes=90")
    assert identity(other) == identity(changed())
    assert (changed().deadline, changed().budget_minutes) == (None, 15)
    assert changed("budget_minutes=null").budget_minutes is None
    assert changed("deadline=06:30", "deadline=null").deadline is None


@pytest.mark.parametrize(
    ("override", "said"),
    [
        ("deadline=25:00", '"25:00" is no time of day; write it as "06:30"'),
        ("deadline=soon", '"soon" is no time of day; write it as "06:30"'),
        ("deadline=390", "390 is not allowed; a text, in quotes where it looks like something else"),
        ("deadline_time_zone=Europe/Berln", '"Europe/Berln" is no time zone; did you mean Europe/Berlin?'),
        ("budget_minutes=0", "0 is not allowed; more than 0.0"),
        ("budget_minutes=1:30", '"1:30" is not allowed; a number'),
    ],
)
def test_wrong_hours_are_one_line(override: str, said: str) -> None:
    assert refusal(STARTER, override) == f"--set {override}: {said}"
