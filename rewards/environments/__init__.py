"""Environments that come with Night school."""
