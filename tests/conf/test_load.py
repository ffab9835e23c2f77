"""A configuration is read whole or refused in one line."""

import json
from pathlib import Path
from typing import Any

import pytest
import yaml
from hypothesis import given, settings
from hypothesis import strategies as st

from benchmarks.inputs.starter import STUDIED
from conf.load import FROZEN, STARTER, frozen_yaml, identity, load_night
from conf.schema import NightConfig
from conf.sections.errors import REMOVED
from conf.sections.teaching import TeachConfig
from conf.storage.home import InputError

FULL_DAY = STARTER.with_name("full_day.yaml")
SMALL = """\
name: small
benchmarks:
  - {name: arithmetic, levels: ["1"]}
grpo:
  rounds: 2
exam:
  target: {benchmark: arithmetic, levels: ["1"]}
"""
ENDPOINT = {"base_url": "http://127.0.0.1:8000/v1", "model": "wise"}
SECTIONS = {"teacher": {"endpoint": ENDPOINT}, "judge": {"endpoint": ENDPOINT}, "on_policy": {"teacher": "starter"}}
TEACHER = f"distill.teacher={{endpoint: {json.dumps(ENDPOINT)}}}"


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


def changed(*overrides: str) -> NightConfig:
    return load_night(STARTER, overrides)


def test_the_full_day_has_all_that_a_night_can_learn_from() -> None:
    full = load_night(FULL_DAY)
    kinds = [step.kind for step in full.steps]
    assert kinds == ["lessons", "grpo", "distill", "self_distill", "grpo", "self_play"]
    assert full.judge is not None
    assert all(full.day.model_dump().values())
    assert full.distill.teacher is not None
    assert (full.on_policy.teacher, full.student.source) == (str(STUDIED), "starter")
    assert full.channels == ("corrections", "words", "feedback", "picks")
    assert full.learned_reward.owner_share > 0
    assert full.day.generated_preferences > full.reward_model.min_picks


@pytest.mark.parametrize(
    ("was", "becomes", "said"),
    [
        ("rounds: 2", "roundz: 2", "grpo.roundz: unknown key; did you mean 'rounds'?"),
        ("rounds: 2", "group_size: 80", "grpo.group_size: 80 is not allowed; less than or equal to 64"),
        ("rounds: 2", 'rounds: "2"', 'grpo.rounds: "2" is not allowed; a valid integer'),
        ("rounds: 2", "clip_high: .inf", "grpo.clip_high: Infinity is not allowed; a finite number"),
        ("rounds: 2", "overlong: keep", "grpo.overlong: \"keep\" is not allowed; 'train', 'mask' or 'shape'"),
        ("rounds: 2", "sampler_ratio_band: [1]", "grpo.sampler_ratio_band.1: is missing; it has no default"),
        ("grpo:\n  rounds: 2", "grpo: 2", "grpo: 2 is not allowed; an object"),
        ('["1"]}\ngrpo', "[9]}\ngrpo", "benchmarks.0: arithmetic: no level 9; there are 1, 2, 3, 4, 5"),
        ("exam:", "exan:", "exan: unknown key; did you mean 'exam'?; also exam: is missing; it has no default"),
        (
            "exam:",
            "exam:\n  guards: [{benchmark: gsm8k}, {benchmark: gsm8k}]",
            "exam: two parts of the exam are named gsm8k; give each another benchmark, subset or levels",
        ),
        ("rounds: 2", "7: 2", "grpo.7: unknown key; known are aggregation, choice, clip_high, clip_low"),
        (
            "rounds: 2",
            "rounds: 2\n  rounds: 3",
            'line 6, column 3: not valid YAML: found duplicate key "rounds" with value "3" (original value: "2")',
        ),
        ("rounds: 2", "rounds: [2", "line 6, column 5: not valid YAML: expected ',' or ']', but got ':'"),
    ],
)
def test_a_mistake_in_the_file_is_one_line(in_folder: Path, was: str, becomes: str, said: str) -> None:
    assert was in SMALL
    in_folder.write_text(SMALL.replace(was, becomes, 1))
    line = refusal(in_folder)
    assert line.startswith(f"my.yaml: {said}") if "known are" in said else line == f"my.yaml: {said}"


@pytest.mark.parametrize(
    ("override", "said"),
    [
        ("benchmarks=[{name: humaneval}]", "benchmarks.0: humaneval cannot be trained on: it has exam"),
        ("benchmarks=[{name: instructions}]", "benchmarks.0: instructions cannot be trained on: it has exam"),
        ('benchmarks=[{name: math, subset: "500"}]', "benchmarks.0: MATH-500 cannot be trained on: it is part"),
        ("benchmarks=[{name: mbpp, subset: tidy}]", 'benchmarks.0: no subset "tidy"; the only subset of mbpp is "san'),
        ("exam.target={benchmark: gsm8k, subset: x}", 'no subset "x"; gsm8k has no subsets'),
        ('benchmarks.0.levels=["6"]', "benchmarks.0: arithmetic: no level 6; there are 1, 2, 3, 4, 5"),
        ('exam.target={benchmark: mbpp, levels: ["1"]}', "mbpp: its problems have no levels; remove `levels`"),
        ("exam.target={benchmark: 'my:Own', levels: ['1']}", "my:Own: its problems have no levels; remove"),
        ("benchmarks=[{name: mbpp, lenient: true}]", "benchmarks.0: only gsm8k can be read leniently, not mbpp"),
        ("benchmarks=[{name: arithmetic, source: x}]", "benchmarks.0: arithmetic: its problems come with the program"),
        ("benchmarks=[{name: gsm8k, source: here, revision: main}]", "benchmarks.0: a revision belongs to the hub"),
        ("benchmarks=[{name: 'my:Own', revision: main}]", "benchmarks.0: a revision belongs to the hub"),
        ("benchmarks=[{name: gsm8k, weight: 0}]", "benchmarks.0.weight: 0 is not allowed; greater than 0"),
        (
            "benchmarks=[{name: gsm8k, weight: 2}, {name: gsm8k, lenient: true}]",
            "two benchmarks have the same problems of gsm8k; merge them and their weights",
        ),
        ("grpo={group_size: 4, train_on: 8}", "train_on: 8 is more than the group_size, 4; lower it"),
        ("grpo={credit: td, train_on: 4}", "train_on: with credit: td all episodes are trained on; set it to null"),
        ("grpo.max_completion_tokens=512", "grpo.max_completion_tokens: 512 leaves no room for a prompt in engine."),
        ("exam.max_completion_tokens=999", "exam.max_completion_tokens: 999 leaves no room for a prompt in engine."),
        ("deadline=25:00", '"25:00" is not a time of day; write it as "06:30"'),
        ("deadline_time_zone=Europe/Berln", '"Europe/Berln" is not a time zone; did you mean Europe/Berlin?'),
        ("stages=[{grop: 3}]", "stages.0.grop: \"grop\" is not allowed; 'grpo' or 'self_play'"),
        ("stages=[{grpo: 1, self_play: 2}]", "stages.0: {"),
        ("stages=[lessons, grpo, lessons]", "`lessons` is listed twice, but the day is learned once; remove one"),
    ],
)
def test_values_that_make_no_sense_together(in_folder: Path, override: str, said: str) -> None:
    assert refusal(in_folder, override).removeprefix("my.yaml: ").removeprefix(f"--set {override}: ").startswith(said)


@pytest.mark.parametrize(
    ("content", "said"),
    [
        (b"", "null is not allowed; must be a mapping, a line `key: value` for each key"),
        (b"- 1\n- 2\n", "[1, 2] is not allowed; must be a mapping, a line `key: value` for each key"),
        (b"name: caf\xe9\n", "byte 9 is not UTF-8; a configuration is YAML text"),
        (b"name: &a [*a]\n", "not valid YAML: Circular reference detected"),
        (b"[" * 600, "not valid YAML: nested too deep"),
        (b"a: 1\n---\nb: 2\n", "line 2, column 1: not valid YAML: but found another document"),
    ],
)
def test_what_is_no_configuration_at_all(in_folder: Path, content: bytes, said: str) -> None:
    in_folder.write_bytes(content)
    assert refusal(in_folder) == f"my.yaml: {said}"


def test_files_that_cannot_be_read(in_folder: Path) -> None:
    assert refusal(Path("your.yaml")) == "your.yaml: no such file; conf/starter.yaml is an example to start from"
    assert refusal(Path(".")) == ".: cannot be read: Is a directory"


def test_overrides_reach_every_place(in_folder: Path) -> None:
    config = load_night(
        in_folder,
        [
            "grpo.rounds=4",
            "optimizer.learning_rate=1e-4",
            "lora.rank=8",
            "exam.guards=[{benchmark: gsm8k, problems: 50}]",
            "exam.guards.0.problems=60",
            "student.system=Think = write",
            "student.template_arguments.enable_thinking=false",
            "grpo.rounds=5",
        ],
    )
    assert (config.grpo.rounds, config.optimizer.learning_rate) == (5, 1e-4)
    assert config.lora.rank == 8
    assert (config.exam.guards[0].problems, config.student.system) == (60, "Think = write")
    assert config.student.template_arguments == {"enable_thinking": False}


@pytest.mark.parametrize(
    ("override", "said"),
    [
        ("grpo.rounds", "must look like KEY=VALUE, for example --set grpo.rounds=4"),
        ("grpo..rounds=4", "must look like KEY=VALUE, for example --set grpo.rounds=4"),
        ("grpoo.rounds=4", "unknown key; did you mean 'grpo'?"),
        ("rounds=4", "unknown key; did you mean 'grpo.rounds'?"),
        ("benchmarks.0.nam=gsm8k", "unknown key; did you mean 'name'?"),
        ("grpo.rounds=[", "not valid YAML: expected the node content, but found '<stream end>'"),
        ("grpo.group_size=80", "80 is not allowed; less than or equal to 64"),
        ("benchmarks.1.weight=2", "benchmarks.1 does not exist; use 0 to 0"),
        ("name.first=x", 'name is "small", which has no keys'),
    ],
)
def test_a_mistake_in_an_override_names_the_override(in_folder: Path, override: str, said: str) -> None:
    assert refusal(in_folder, override) == f"--set {override}: {said}"


@pytest.mark.parametrize("option", REMOVED)
def test_a_removed_option_says_what_replaces_it_and_a_night_that_has_it_is_read(in_folder: Path, option: str) -> None:
    instead = REMOVED.get(option.partition(".")[0], REMOVED[option])
    override = option.replace("guards.N.", "guards=[{benchmark: gsm8k, ") + (": 1}]" if ".N." in option else "=1")
    assert f"was removed: {instead}" in refusal(in_folder, override)
    *sections, name = option.split(".")
    written = yaml.safe_load(frozen_yaml(load_night(in_folder, ["exam.guards=[{benchmark: gsm8k}]"])))
    section: Any = written
    for key in sections:
        if section.get(key) is None:
            section[key] = dict(SECTIONS.get(key, {}))
        section = section[key] if key != "guards" else {"N": section[key][0]}
    section[name] = ENDPOINT.get(name, [1] if name == "trainer" else 1)
    in_folder.write_text(yaml.safe_dump(written))
    assert f"was removed: {instead}" in refusal(in_folder)
    in_folder.write_text(f"{FROZEN}\n{yaml.safe_dump(written)}")
    assert load_night(in_folder).exam.target.benchmark == "arithmetic"


def test_a_night_of_version_0_1_is_read() -> None:
    """Every option that it had: its lessons are known by its configuration."""
    assert load_night(Path(__file__).with_name("frozen-0.1.0.yaml")).distill.steps == 48


def test_a_night_with_removed_values_is_read(in_folder: Path) -> None:
    written = yaml.safe_load(frozen_yaml(load_night(in_folder)))
    written["judge"] = {"endpoint": None, "checkpoint": "champion", "picks": 30}
    written["stages"] = ["distill", {"on_policy": 3}, "grpo"]
    written["grpo"]["credit"] = "gigpo"
    in_folder.write_text(f"{FROZEN}\n{yaml.safe_dump(written)}")
    night = load_night(in_folder)
    assert (night.judge, night.rounds, night.grpo.credit) == (None, 3 + 2, "episode")


def test_all_mistakes_are_named_each_where_it_was_written(in_folder: Path) -> None:
    in_folder.write_text(SMALL.replace("rounds: 2", "group_size: 80\n  clip_low: -1"))
    assert refusal(in_folder, "grpo.rounds=-3", "grpo.roundz=1") == (
        "--set grpo.roundz=1: unknown key; did you mean 'rounds'?; also --set grpo.rounds=-3: -3 is not allowed; "
        "greater than or equal to 0; also my.yaml: grpo.group_size: 80 is not allowed; less than or equal to 64; "
        "also grpo.clip_low: -1 is not allowed; greater than or equal to 0"
    )


@pytest.mark.parametrize("name", ["starter", "nightly", "full_day", "gsm8k", "math", "mbpp"])
def test_the_frozen_night_reads_back_as_itself(name: str, tmp_path: Path) -> None:
    config = load_night(STARTER.with_name(f"{name}.yaml"))
    frozen = tmp_path / "config.yaml"
    frozen.write_text(frozen_yaml(config))
    assert load_night(frozen) == config
    assert set(yaml.safe_load(frozen.read_text())) == set(NightConfig.model_fields)


STARTER_NIGHT = load_night(STARTER)


@settings(deadline=None)
@given(system=st.text(st.characters(codec="utf-8")), rate=st.floats(1e-12, 1e3), argument=st.integers() | st.booleans())
def test_no_text_or_number_is_lost_in_the_frozen_night(
    tmp_path_factory: pytest.TempPathFactory, system: str, rate: float, argument: int
) -> None:
    student = STARTER_NIGHT.student.model_copy(update={"system": system, "template_arguments": {"argument": argument}})
    optimizer = STARTER_NIGHT.optimizer.model_copy(update={"learning_rate": rate})
    config = STARTER_NIGHT.model_copy(update={"student": student, "optimizer": optimizer})
    frozen = tmp_path_factory.mktemp("night") / "config.yaml"
    frozen.write_text(frozen_yaml(config), encoding="utf-8", newline="")
    assert load_night(frozen) == config


@pytest.mark.parametrize("written", ["'1e-4'", "'007'", "06:30", "22:15", "yes", "'null'"])
def test_a_text_that_looks_like_something_else_stays_a_text(tmp_path: Path, written: str) -> None:
    frozen = tmp_path / "config.yaml"
    frozen.write_text(frozen_yaml(changed(f"student.system={written}")))
    assert load_night(frozen).student.system == written.strip("'")


def leaves(value: Any, key: str = "") -> set[str]:
    """Return the keys of a dumped configuration that hold a plain value or a list."""
    if not isinstance(value, dict) or not value:
        return {key}
    return {leaf for inner, below in value.items() for leaf in leaves(below, f"{key}.{inner}" if key else inner)}


def test_every_other_value_makes_another_night() -> None:
    config = changed(TEACHER)
    every, identifying = leaves(config.model_dump(mode="json")), leaves(config.identity())
    assert every - identifying == {
        *("budget_minutes", "deadline", "deadline_time_zone", "distill.teacher.endpoint.base_url"),
        "cluster.address",
        *(f"teach.{name}" for name in TeachConfig.model_fields),
        *("tracking.tracking_uri", "tracking.experiment"),
    }
    assert identifying < every
    assert len({identity(changed(value)) for value in ("seed=1", "seed=2", "lora.rank=8", "lora.rank=9")}) == 4


def test_a_misspelt_override_of_a_frozen_configuration_is_refused(in_folder: Path) -> None:
    in_folder.write_text(frozen_yaml(load_night(in_folder)))
    assert "unknown key" in refusal(in_folder, "grpo.ronds=4")
    assert load_night(in_folder, ["grpo.rounds=4"]).grpo.rounds == 4
