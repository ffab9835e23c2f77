"""An exam outside of any night: whose code it trusts."""

from pathlib import Path

from conf.schema import StudentConfig
from flows.exam import own


def test_it_trusts_the_model_that_the_configuration_names_and_no_other(tmp_path: Path) -> None:
    mine, others, checkpoints = tmp_path / "mine", tmp_path / "others", tmp_path / "checkpoints"
    trusted = StudentConfig(source=str(mine), trust_remote_code=True)
    assert own(trusted, mine, checkpoints).trust_remote_code
    assert own(trusted, checkpoints / "0a1b", checkpoints).trust_remote_code
    assert not own(trusted, others, checkpoints).trust_remote_code
    assert not own(trusted, checkpoints / "0a1b" / "deeper", checkpoints).trust_remote_code
    assert not own(StudentConfig(source=str(mine)), mine, checkpoints).trust_remote_code
