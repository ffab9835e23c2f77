"""vLLM: environment, weight sync and its checks."""
