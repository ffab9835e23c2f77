"""Benchmarks of speed, memory and learning, compared with what a user would choose instead (vLLM, TRL)."""
