"""Benchmark rows from the Hugging Face hub, or one clear line where it cannot be reached."""

from collections.abc import Mapping
from typing import Any

from conf.home import InputError
from rewards.jsonl_source import DATA_VARIABLE, checked


def hub_rows(
    dataset: str, config: str | None, split: str, fields: Mapping[str, type], revision: str | None = None
) -> list[dict[str, Any]]:
    """The rows of one split, in the hub's order, each with at least `fields` of the given types.

    `dataset` is a hub id (or a folder in the hub's layout), `config` one of its configurations (None: its only
    one), `revision` a branch, tag or commit. Raises InputError, one line, where the hub or the split cannot be
    reached and where a row lacks a field.
    """
    import datasets  # two seconds to import, and not needed for local files

    try:
        rows = list(datasets.load_dataset(dataset, config, split=split, revision=revision))
    except Exception as error:  # whatever the network, the hub or its client come up with
        reason = " ".join(str(error).split())[:200]
        raise InputError(
            f"{dataset} cannot be loaded from the hub ({type(error).__name__}: {reason}); "
            f"set `source` or {DATA_VARIABLE} to a folder with the data, or check the network"
        ) from error
    where = f"{dataset}, {f'{config} ' if config else ''}{split}"
    return [checked(row, fields, f"{where} row {index}") for index, row in enumerate(rows)]
