"""Extracts programs from answers, and runs unit tests on them in a sandbox."""
