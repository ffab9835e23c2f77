"""Benchmarks, and the graders of their answers."""
