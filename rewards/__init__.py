"""Benchmarks, and graders for their answers."""
