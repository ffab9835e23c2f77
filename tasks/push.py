"""Whoever was promoted, pushed to a repository of the Hugging Face hub, where its owner names one."""

import os
from pathlib import Path

from huggingface_hub import HfApi
from prefect import task
from prefect.cache_policies import NO_CACHE

from conf.urls import struck


@task(name="push", tags=["registry"], cache_policy=NO_CACHE)
def push(checkpoint: Path, repo: str, message: str) -> str | None:
    """Uploads a checkpoint, its card included, as one commit. Returns why that failed, in a line; None if it did not.

    A repository that is not there yet is made, and private; one that is there stays what it is. The token is the hub
    client's: HF_TOKEN, or that of `hf auth login`. The same files again make no further commit.
    """
    api = HfApi(endpoint=os.environ.get("HF_ENDPOINT"))
    try:
        api.create_repo(repo, private=True, exist_ok=True)
        api.upload_folder(repo_id=repo, folder_path=checkpoint, commit_message=message)
    except Exception as error:  # whatever network, hub and client come up with: the night does not depend on it
        reason = struck(" ".join(str(error).split()))
        return f"{checkpoint.name} was not pushed to {repo} ({type(error).__name__}: {reason[:200]})"
    return None
