"""Benchmarks: their problems, their prompts and the grading of answers."""
