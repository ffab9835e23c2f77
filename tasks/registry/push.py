"""Whoever was promoted, pushed to a repository of the Hugging Face hub, where its owner names one."""

import os
from pathlib import Path

from huggingface_hub import HfApi
from prefect import task
from prefect.cache_policies import NO_CACHE

from conf.redact import redact
from tasks.workers import WorkerDiedError, call_once

LIMIT = 2 * 3600.0  # seconds


@task(name="push", task_run_name="push", cache_policy=NO_CACHE)
def push(checkpoint: Path, repo: str, message: str) -> str | None:
    """Uploads a checkpoint, its card included, as one commit. Returns why that failed, in a line; None if it did not.

    A repository that is not there yet is made, and private; one that is there stays what it is. The token is the hub
    client's: HF_TOKEN, or that of `hf auth login`. The same files again make no further commit. The client itself may
    wait for ever for a hub that says nothing: the report waits `LIMIT` seconds at most.
    """
    try:
        reason = call_once("upload", LIMIT, upload, checkpoint, repo, message)
    except WorkerDiedError as error:
        reason = str(error)
    return f"{checkpoint.name} was not pushed to {repo} ({reason})" if reason else None


def upload(checkpoint: Path, repo: str, message: str) -> str | None:
    """In the child: why it failed, in a few words; whatever network, hub and client come up with."""
    api = HfApi(endpoint=os.environ.get("HF_ENDPOINT"))
    try:
        api.create_repo(repo, private=True, exist_ok=True)
        api.upload_folder(repo_id=repo, folder_path=checkpoint, commit_message=message)
    except Exception as error:
        return f"{type(error).__name__}: {redact(' '.join(str(error).split()))[:200]}"
    return None
