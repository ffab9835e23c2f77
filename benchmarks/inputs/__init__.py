"""What the benchmarks start from: students, picks and rollouts."""
