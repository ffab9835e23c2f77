"""The pages of Prefect and MLflow: where they listen, and who may look."""
