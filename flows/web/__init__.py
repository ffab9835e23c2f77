"""Prefect's and MLflow's web pages: where they listen, and who may see them."""
