"""How the benchmarks show what they measured: tables and pictures."""
