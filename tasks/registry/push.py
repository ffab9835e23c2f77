"""Push a promoted checkpoint to a repository of the Hugging Face hub."""

import os
from pathlib import Path

from huggingface_hub import HfApi
from prefect import task
from prefect.cache_policies import NO_CACHE

from conf.redact import redact
from tasks.workers.worker import WorkerDiedError, call_once

LIMIT = 2 * 3600.0  # seconds


@task(name="push", task_run_name="push", cache_policy=NO_CACHE)
def push(checkpoint: Path, repo: str, message: str) -> str | None:
    """Upload a checkpoint with its card as one commit. Return None, or if it failed the reason, in one line.

    A new repository is private; an existing one keeps its visibility. The token comes from HF_TOKEN or from
    `hf auth login`. Uploading the same files again makes no second commit. The hub client may wait forever if the hub
    does not answer, so the upload runs in a child process for at most `LIMIT` seconds.
    """
    try:
        reason = call_once("upload", LIMIT, upload, checkpoint, repo, message)
    except WorkerDiedError as error:
        reason = str(error)
    return f"{checkpoint.name} was not pushed to {repo} ({reason})" if reason else None


def upload(checkpoint: Path, repo: str, message: str) -> str | None:
    """Upload from the child process. Return None, or if it failed the reason, in a few words."""
    api = HfApi(endpoint=os.environ.get("HF_ENDPOINT"))
    try:
        api.create_repo(repo, private=True, exist_ok=True)
        api.upload_folder(repo_id=repo, folder_path=checkpoint, commit_message=message)
    except Exception as error:  # whatever network, hub and client raise
        return f"{type(error).__name__}: {redact(' '.join(str(error).split()))[:200]}"
    return None
