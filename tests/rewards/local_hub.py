"""Data sets in the layout of the Hugging Face hub, in a folder."""

import json
from pathlib import Path
from typing import Any


def write_dataset(folder: Path, configs: dict[str, dict[str, list[dict[str, Any]]]]) -> str:
    """Writes a JSONL file a split and the card that says which configuration has which."""
    card = ["---", "configs:"]
    for config, splits in configs.items():
        card += [f"- config_name: {config}", "  data_files:"]
        for split, rows in splits.items():
            (folder / config).mkdir(parents=True, exist_ok=True)
            (folder / config / f"{split}.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
            card += [f"  - split: {split}", f"    path: {config}/{split}.jsonl"]
    (folder / "README.md").write_text("\n".join([*card, "---", ""]))
    return str(folder)
