"""Prefect: server, worker, deployments, nested runs."""
