"""Prefect's server, worker and deployments, and the runs of nights whose process has died."""
