"""vLLM: environment, weight sync and its proof."""
