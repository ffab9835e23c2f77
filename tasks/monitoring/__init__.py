"""Monitoring: alarms, incidents, MLflow tracking and notifications."""
