"""The search for keys finds them wherever a night could have written one."""

import sqlite3
from pathlib import Path

import pandas as pd

from tests.flows.planted import KEYS, with_keys


def test_a_key_is_found_in_texts_tables_and_databases(tmp_path: Path) -> None:
    (tmp_path / "logs").mkdir()
    (tmp_path / "logs" / "engine.log").write_text(f"token: {KEYS['HF_TOKEN']}\n")
    (tmp_path / "config.yaml").write_text("teacher: none\n")
    (tmp_path / "empty").touch()
    completions = [f"answer {number}" for number in range(500)]
    pd.DataFrame({"text": completions}).to_parquet(tmp_path / "clean.parquet")
    pd.DataFrame({"text": [*completions, KEYS["OPENAI_API_KEY"]]}).to_parquet(tmp_path / "rollouts.parquet")
    with sqlite3.connect(tmp_path / "mlflow.db") as database:
        database.execute("create table params (value text)")
        database.execute("insert into params values (?)", [f"https://me:{KEYS['MLFLOW_TRACKING_PASSWORD']}@host"])
    (tmp_path / "header.txt").write_text("Authorization: Basic bWU6cGxhbnRlZC03ZjNhOWM=")
    found = {file.relative_to(tmp_path).as_posix() for file in with_keys(tmp_path)}
    assert found == {"logs/engine.log", "rollouts.parquet", "mlflow.db", "header.txt"}
