"""Benchmarks, and how an answer is judged."""
