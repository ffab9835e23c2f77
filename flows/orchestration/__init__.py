"""Runs Prefect's server and worker, prepares deployments, and cleans up after nights whose process has died."""
