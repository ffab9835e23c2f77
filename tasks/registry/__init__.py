"""Checkpoints in MLflow: import, promote, prune, publish."""
